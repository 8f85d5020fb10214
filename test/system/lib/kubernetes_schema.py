"""kubernetes_schema.py FILE...: checks manifests by the types of Kubernetes' own client library: each key is known,
has a value of its type, and no key that is required is missing. Prints a line for each mistake."""

import sys

import yaml
from kubernetes.client import models

SIMPLE = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}


class Mistake(Exception):
    pass


def value_of(value, kind, path):
    """The value as the client library has it."""
    if kind.startswith("list["):
        if not isinstance(value, list):
            raise Mistake(f"{path}: a list is wanted")
        return [value_of(one, kind[5:-1], f"{path}[{at}]") for at, one in enumerate(value)]
    if kind.startswith("dict("):
        if not isinstance(value, dict):
            raise Mistake(f"{path}: a map is wanted")
        inner = kind[5:-1].split(",", 1)[1].strip()
        return {key: value_of(one, inner, f"{path}.{key}") for key, one in value.items()}
    if kind in SIMPLE:
        if not isinstance(value, SIMPLE[kind]) or (kind != "bool" and isinstance(value, bool)):
            raise Mistake(f"{path}: {kind} is wanted, not {value!r}")
        return value
    model = getattr(models, kind)
    if not isinstance(value, dict):
        raise Mistake(f"{path}: a map is wanted")
    names = {key: name for name, key in model.attribute_map.items()}
    fields = {}
    for key, one in value.items():
        if key not in names:
            raise Mistake(f"{path}: unknown key {key}")
        fields[names[key]] = value_of(one, model.openapi_types[names[key]], f"{path}.{key}")
    try:
        return model(**fields)
    except ValueError as missing:
        raise Mistake(f"{path}: {missing}") from missing


def consistent(document):
    """Names that the schema cannot check."""
    pod = document["spec"].get("template", document)
    if "selector" in document["spec"]:
        wanted, has = document["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"]
        if wanted.items() - has.items():
            raise Mistake("the selector does not select the template")
    volumes = {one["name"] for one in pod["spec"].get("volumes", [])}
    for container in pod["spec"]["containers"]:
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                raise Mistake(f"{container['name']}: no volume {mount['name']}")
            shares = mount.get("mountPropagation") == "Bidirectional"
            if shares and not container.get("securityContext", {}).get("privileged"):
                raise Mistake(f"{container['name']}: Bidirectional is for privileged containers")


def main(files):
    mistakes = 0
    for file in files:
        try:
            with open(file, encoding="utf-8") as text:
                documents = list(yaml.safe_load_all(text))
        except yaml.YAMLError as mistake:
            mistakes += 1
            print(f"{file}: {' '.join(str(mistake).split())}")
            continue
        for document in documents:
            where = f"{file}: {document['kind']}"
            try:
                value_of(document, "V1" + document["kind"], where)
                consistent(document)
            except Mistake as mistake:
                mistakes += 1
                print(mistake if where in str(mistake) else f"{where}: {mistake}")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
