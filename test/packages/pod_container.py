"""pod_container.py MANIFEST CONTAINER DIRECTORY: arguments of `podman run`, each with a NUL behind it, for one container of
a pod whose only volume is DIRECTORY. Podman 4.3 runs pods itself, but passes no mounts on between their containers."""

import sys

import yaml

PROPAGATION = {"Bidirectional": "rshared", "HostToContainer": "rslave"}


def main(manifest, name, directory):
    with open(manifest, encoding="utf-8") as text:
        pod = yaml.safe_load(text)
    container = next(one for one in pod["spec"]["containers"] if one["name"] == name)
    (mount,) = container["volumeMounts"]
    words = ["--volume", f"{directory}:{mount['mountPath']}:{PROPAGATION[mount['mountPropagation']]}"]
    if container.get("securityContext", {}).get("privileged"):
        words.append("--privileged")
    for variable in container.get("env", []):
        words += ["--env", f"{variable['name']}={variable['value']}"]
    words += [container["image"], *container["command"]]
    sys.stdout.write("".join(word + "\0" for word in words))


if __name__ == "__main__":
    main(*sys.argv[1:])
