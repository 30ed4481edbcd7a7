"""Checks deploy/kserve against the types of KServe, by the CustomResourceDefinitions of a checkout of its sources.

    git clone --depth 1 https://github.com/kserve/kserve
    pip install jsonschema pyyaml
    python scripts/kserve-check.py kserve

A field that the definitions do not have is a fault, as it is to `kubectl apply --validate=strict`.
"""

import pathlib
import sys

import jsonschema
import yaml

DEPLOY = pathlib.Path(__file__).parent.parent / "deploy/kserve"
CRDS = pathlib.Path(sys.argv[1]) / "config/crd/full"


def strict(schema):
    """The same schema, without fields that it does not name."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: strict(v) for k, v in schema.items()}
    if isinstance(out.get("properties"), dict) and "additionalProperties" not in out and not out.get("x-kubernetes-preserve-unknown-fields"):
        out["additionalProperties"] = False
    if out.get("x-kubernetes-int-or-string"):
        out = {"type": ["integer", "string"]}
    return out


def definition(kind, version):
    for path in CRDS.glob("serving.kserve.io_*.yaml"):
        for crd in yaml.safe_load_all(path.read_text()):
            if crd["spec"]["names"]["kind"] == kind:
                for v in crd["spec"]["versions"]:
                    if v["name"] == version:
                        schema = strict(v["schema"]["openAPIV3Schema"])
                        schema["properties"]["metadata"] = {"type": "object"}
                        return schema
    sys.exit(f"{CRDS} has no {kind} {version}")


faults = 0
for path in sorted(DEPLOY.glob("*.yaml")):
    for doc in yaml.safe_load_all(path.read_text()):
        group, version = doc["apiVersion"].split("/")
        if group != "serving.kserve.io":
            print(f"{path.name}: {doc['kind']} is not KServe's")
            continue
        errors = list(jsonschema.Draft7Validator(definition(doc["kind"], version)).iter_errors(doc))
        for e in errors:
            print(f"{path.name}: {'.'.join(map(str, e.absolute_path))}: {e.message[:200]}")
        faults += len(errors)
        print(f"{path.name}: {doc['kind']} {version}, {len(errors)} faults")
sys.exit(faults > 0)
