"""recipe_steps.py RECIPE: the steps of a CI job as a script for bash, each as the CI's runner runs it: a shell of its own
that ends at the first error (GitHub), or the lines of one shell (GitLab). Checkouts and caches are the caller's."""

import shlex
import sys

import yaml


def exports(variables):
    return "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in variables.items())


def github(job):
    script = exports(job.get("env", {}))
    for step in job["steps"]:
        name = step.get("name", step.get("uses"))
        if "run" not in step:
            script += f"echo '== {name}: by the runner'\n"
            continue
        script += f"echo {shlex.quote('== ' + name)}\nbash -eo pipefail -c {shlex.quote(step['run'])}\n"
    return script


def gitlab(job):
    lines = job["before_script"] + job["script"]
    shell = "".join(f"echo {shlex.quote('$ ' + line)}\n{line}\n" for line in lines)
    return exports(job.get("variables", {})) + f"bash -eo pipefail -c {shlex.quote(shell)}\n"


def main(recipe):
    with open(recipe, encoding="utf-8") as text:
        document = yaml.safe_load(text)
    print("set -euo pipefail")
    print(github(document["jobs"]["roce"]) if "jobs" in document else gitlab(document["roce"]))


if __name__ == "__main__":
    main(sys.argv[1])
