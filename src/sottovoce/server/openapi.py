"""The OpenAPI document: the service, described to other programs."""

from importlib.metadata import version
from typing import Any

from sottovoce.server.settings import ServerSettings
from sottovoce.shared.amendment import ARCHIVED, KINDS, PAUSED, RESTORE, RUNNING, STOPPED
from sottovoce.shared.methods import method_names
from sottovoce.shared.wire import WIRE_VERSION

Json = dict[str, Any]

ERRORS = {
    400: "The body is malformed.",
    401: "No token was shown.",
    403: "This is not the administrator's token.",
    404: "The experiment, the population or the release is unknown.",
    408: "The body took too long to arrive.",
    409: "The experiment cannot be amended so just now; or the release of a report was lost.",
    410: "The experiment is archived.",
    413: "The body is too large.",
    415: "The body is of another type.",
    422: "The body breaks a rule.",
    429: "Too many reports are waiting; send it again later.",
    503: "The database cannot be used just now; send it again later.",
    507: "The disk of the database is full; send it again later.",
}
_DATABASE = (503, 507)
_BODY = (400, 408, 413, 415, 422, 429, *_DATABASE)
_TOKEN = (401, 403)

_COUNT, _TEXT, _ANYTHING = {"type": "integer", "minimum": 0}, {"type": "string"}, Json()
_OF_ESTIMATES = ("estimates", "bins", "arms", "value")
_FINGERPRINT = _HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_PATH = {"type": "string", "pattern": "^[01]*$"}
_KEY = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
_IN_PATH: Json = {"in": "path", "required": True}
_ABOUT = "The fingerprint of the experiment."
_EXPERIMENT = {"name": "experiment", **_IN_PATH, "description": _ABOUT, "schema": _FINGERPRINT}
_VERSIONS = {"type": "integer", "minimum": 1, "maximum": 2**32 - 1}
_VERSION = {"name": "version", **_IN_PATH, "schema": _VERSIONS}
_BLOCK = {"name": "block", **_IN_PATH, "schema": _COUNT}
_KNOWN = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the copy that one has.",
    "schema": _TEXT,
}
_ADMIN: Json = {"security": [{"administrator": []}]}


def document(settings: ServerSettings) -> Json:
    """Return the document of a server with these settings."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sottovoce",
            "version": version("sottovoce"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Takes ε-locally-differentially-private reports, publishes releases."
            " No address takes a context, an arm or a reward.",
        },
        "paths": {
            **_reports(settings.most_reports),
            **_experiments(),
            **{path: {"get": operation} for path, operation in _readable().items()},
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"administrator": {"type": "http", "scheme": "bearer"}},
        },
    }


def _reports(most: int) -> Json:
    one = _operation(
        "Store one report.",
        _ref("Receipt"),
        errors=(404, 409, 410, *_BODY),
        description="Answered once the report is durably stored. A report that is sent"
        " again is not counted again.",
        requestBody=_report_body(_ref("Report")),
    )
    several = _operation(
        f"Store up to {most} reports.",
        _ref("Receipt"),
        errors=_BODY,
        description="The receipt lists those that are refused; the others are stored.",
        requestBody=_report_body({**_list(_ref("Report")), "maxItems": most}),
    )
    return {"/reports": {"post": one}, "/reports/batch": {"post": several}}


def _experiments() -> Json:
    bodies = {"application/json": _ref("Settings"), "application/toml": _TEXT}
    post = _operation(
        "Begin an experiment.",
        _ref("Experiment"),
        errors=(*_TOKEN, *_BODY),
        requestBody=_body(bodies),
        **_ADMIN,
    )
    post["responses"]["201"] = _content("It has begun.", "application/json", _ref("Experiment"))
    listed = _object(experiments=_list(_ref("Listed")))
    get = _operation("List all experiments.", listed, errors=_DATABASE)
    index = _operation("All experiments, for people.", _TEXT, kind="text/html", errors=_DATABASE)
    index["responses"]["200"]["content"]["application/json"] = {"schema": listed}
    return {
        "/experiments": {"post": post, "get": get},
        "/experiments/{experiment}/amendments": _amendments(),
        "/": {"get": index},
    }


def _amendments() -> Json:
    post = _operation(
        "Amend an experiment.",
        _ref("Entry"),
        errors=(*_TOKEN, 404, 409, *_BODY),
        description="Stored when this is answered; the learner takes it in a moment. With `after`,"
        " the same request may be sent again: it is not made twice.",
        parameters=[_EXPERIMENT],
        requestBody=_body({"application/json": _ref("Change")}),
        **_ADMIN,
    )
    post["responses"]["201"] = _content("It is stored.", "application/json", _ref("Entry"))
    of: Json = {"errors": (404, *_DATABASE), "parameters": [_EXPERIMENT]}
    what = "What was amended, by whom, and in which release it is."
    return {"post": post, "get": _operation(what, _ref("Amendments"), **of)}


def _readable() -> Json:
    """Describe what anybody may read."""
    path = "/experiments/{experiment}"
    of: Json = {"errors": (404, *_DATABASE), "parameters": [_EXPERIMENT]}
    about = {
        "status": ("How far the log and the learner are.", "Status"),
        "certificates": ("Why each arm was dropped.", "Certificates"),
        "estimates": ("What is known of each arm in each bin.", "Estimates"),
        "diagnosis": ("What each auxiliary population brings.", "Diagnosis"),
        "gain": ("What the policy brings over the baseline.", "Gain"),
        "releases": ("Which releases there are: from 1 to the current one.", "Releases"),
    }
    counts = "Counts in Prometheus's format."
    ready = "Whether reports can be stored just now."
    page = _operation("All of it, for people.", _TEXT, kind="text/html", **of)
    page["responses"]["307"] = {"description": "The page of the experiment with this name."}
    return {
        path: page,
        **{
            f"{path}/{at}": _operation(what, _ref(name), **of) for at, (what, name) in about.items()
        },
        f"{path}/releases/current": _cached("The newest release, signed.", "SignedRelease"),
        f"{path}/releases/{{version}}": _cached("Any release, signed.", "SignedRelease", _VERSION),
        f"{path}/chain/{{block}}": _cached("The hashes of 256 releases.", "Chain", _BLOCK),
        "/keys": _operation("The public key that signs.", _object(keys=_ANYTHING)),
        "/health": _operation("Whether this worker runs.", _object(status=_ANYTHING)),
        "/ready": _operation(ready, _object(status=_ANYTHING), errors=_DATABASE),
        "/metrics": _operation(counts, _TEXT, kind="text/plain", errors=_DATABASE),
        "/openapi.json": _operation("This document.", {"type": "object"}),
    }


def _cached(summary: str, name: str, *path: Json) -> Json:
    errors, parameters = (404, *_DATABASE), [_EXPERIMENT, *path, _KNOWN]
    found = _operation(summary, _ref(name), errors=errors, parameters=parameters)
    found["responses"]["200"]["headers"] = {"ETag": {"schema": _TEXT}}
    found["responses"]["304"] = {"description": "The copy that one has is this one."}
    return found


def _operation(
    summary: str,
    schema: Json,
    *,
    kind: str = "application/json",
    errors: tuple[int, ...] = (),
    **more: Any,
) -> Json:
    """Describe what an address does. schema, kind: of the answer. more: as OpenAPI names it."""
    responses = {"200": _content(summary, kind, schema)}
    for status in errors:
        responses[str(status)] = _content(ERRORS[status], "application/json", _ref("Error"))
    return {"summary": summary, "responses": responses, **more}


def _content(description: str, kind: str, schema: Json) -> Json:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _body(schemas: dict[str, Json]) -> Json:
    content = {kind: {"schema": schema} for kind, schema in schemas.items()}
    return {"required": True, "content": content}


def _report_body(schema: Json) -> Json:
    packed = {"type": "string", "format": "binary"}
    return _body({"application/octet-stream": packed, "application/json": schema})


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(items: Json, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


def _object(**properties: Json) -> Json:
    """Describe an object that has these properties, and maybe others."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _closed(properties: Json, *, optional: tuple[str, ...] = ()) -> Json:
    """Describe an object that has these properties and no others."""
    required = [name for name in properties if name not in optional]
    return _object(**properties) | {"required": required, "additionalProperties": False}


def _whole(least: int, most: int) -> Json:
    return {"type": "integer", "minimum": least, "maximum": most}


def _report(**answer: Any) -> Json:
    return _closed(
        {
            "sottovoce": {"const": WIRE_VERSION},
            "kind": {"const": "report"},
            "release": {"type": "string", "pattern": "^[0-9a-f]{24}$"},
            "population": _whole(0, 2**16 - 1),
            "nonce": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            **answer,
        }
    )


def _settings() -> Json:
    """Describe what an experiment is made of: the keys of its TOML file."""
    number, name = {"type": "number"}, {"type": "string", "minLength": 1}
    names = _list(name, minItems=2, uniqueItems=True)
    ends = _list(number, minItems=2, maxItems=2)
    epsilon = {"type": "number", "minimum": 1e-9, "maximum": 1e6}
    shares = _list({"type": "number", "minimum": 0, "maximum": 1})
    flag, chance = {"type": "boolean"}, {"type": "number", "minimum": 0.0001, "maximum": 0.4999}
    kinds = {"numeric": ends, "ordinal": names, "categorical": names, "boolean": {"const": True}}
    flags = {kind: {"optional": flag} for kind in kinds}
    flags["categorical"]["other"] = flag
    features = [
        _closed({"name": name, kind: values, **flags[kind]}, optional=tuple(flags[kind]))
        for kind, values in kinds.items()
    ]
    population = {"name": name, "epsilon": epsilon, "users": _whole(0, 2**53), "behaviour": shares}
    method = {"type": "object", "required": ["name"]}
    properties = {
        "arms": names,
        "context": _list({"oneOf": features}, minItems=1),
        "epsilon": epsilon,
        "name": name,
        "horizon": _whole(1, 2**53),
        "auxiliary": _list(_closed(population, optional=("behaviour",))),
        "method": {"oneOf": [{"enum": method_names()}, method]},
        "release_every": _whole(1, 2**53),
        "seed": _whole(0, 2**53),
        "baseline": _closed({"share": chance, "arm": name}, optional=("arm",)),
    }
    return _closed(properties, optional=tuple(properties)[3:])


def _release() -> Json:
    """Describe a release, which is text inside of a signed one: its signature is of its bytes."""
    axis, arms = _COUNT, _list(_COUNT, uniqueItems=True)
    chance = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    policy = {"bin": _PATH, "arms": arms, "propensities": _list(chance), "waiting": arms}
    levels = _list(_COUNT, minItems=1, uniqueItems=True)
    return _closed(
        {
            "sottovoce": {"const": WIRE_VERSION},
            "kind": {"const": "release"},
            "version": _VERSIONS,
            "experiment": _ref("Settings"),
            "amendments": _list(_ref("Amendment"), minItems=1),
            "cuts": _by_path(axis, "Of each bin that was split, the axis."),
            "sets": _by_path(levels, "Of each bin that was split by levels, those that go up."),
            "bins": _list(_closed(policy, optional=("waiting",)), minItems=1),
            "reward_share": _COUNT,
            "ask": _list(
                _COUNT, description="How many people are asked about no axis, and about each."
            ),
            "scale_share": _COUNT,
            "baseline_share": _COUNT,
            "thresholds": _list(
                _COUNT, description="Of each axis, the threshold about which people are asked."
            ),
            "scales": {
                "type": "object",
                "additionalProperties": _list({"type": "number"}, minItems=1),
                "description": "Of each axis with a scale of its own, the knots between 0 and 1.",
            },
        },
        optional=(
            *("amendments", "sets", "reward_share", "ask", "scale_share", "thresholds", "scales"),
            "baseline_share",
        ),
    )


def _by_path(values: Json, description: str) -> Json:
    return {
        "type": "object",
        "propertyNames": _PATH,
        "additionalProperties": values,
        "description": description,
    }


def _amendment(**more: Json) -> Json:
    """Describe what an amendment says; ``after`` may be left out."""
    name = {"type": "string", "minLength": 1}
    cap = {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}
    about = {"arm": name, "horizon": _whole(1, 2**53), "cap": cap}
    said = {"kind": {"enum": list(KINDS)}, "by": name, **more}
    if "after" not in more:  # it was made, perhaps by a restore
        said["kind"] = {"enum": [*KINDS, RESTORE]}
        about |= {"release": _VERSIONS, "link": _HASH, "branch": _TEXT}
    return _closed({**said, **about}, optional=(*about, "after"))


def _schemas() -> Json:
    state = {"enum": [RUNNING, PAUSED, STOPPED, ARCHIVED]}
    of: Json = {"experiment": _FINGERPRINT, "name": _TEXT, "state": state}
    experiment: Json = {
        "experiment": _FINGERPRINT,
        "name": _TEXT,
        "state": state,
        "arms": _ANYTHING,
        "retired": _list(_TEXT),
        "populations": _ANYTHING,
    }
    return {
        "Report": {"oneOf": [_ref("ReportOfASet"), _ref("ReportOfNumbers")]},
        "ReportOfASet": _report(
            question=_whole(0, 65535),
            ranking=_list(_whole(0, 255), maxItems=255),
            set={"type": "string", "pattern": "^([0-9a-f]{2})*$"},
        ),
        "ReportOfNumbers": _report(payload=_list({"type": "number"})),
        "Settings": _settings(),
        "Receipt": _object(
            stored=_COUNT, repeated=_COUNT, refused=_list(_object(index=_COUNT, reason=_TEXT))
        ),
        "SignedRelease": _object(
            sottovoce={"const": WIRE_VERSION},
            kind={"const": "signed release"},
            before={**_HASH, "description": "The link of the version before."},
            key=_KEY,
            signature={"type": "string", "pattern": "^[0-9a-f]{128}$"},
            release={
                "type": "string",
                "description": "The release's canonical JSON.",
                "contentMediaType": "application/json",
                "contentSchema": _ref("Release"),
            },
        ),
        "Release": _release(),
        "Chain": _object(
            sottovoce={"const": WIRE_VERSION}, kind={"const": "chain"}, hashes=_list(_HASH)
        ),
        "Experiment": _object(**experiment),
        "Listed": _object(**experiment, people=_COUNT),
        "Amendment": _amendment(
            before=_HASH, made={"type": "string", "pattern": "^[0-9]{4}-[0-9-]{5}T[0-9:]{8}Z$"}
        ),
        "Change": _amendment(
            after={**_COUNT, "description": "How many amendments there are before this one."},
        ),
        "Entry": _object(
            number=_whole(1, 2**31 - 1),
            amendment=_ref("Amendment"),
            words=_TEXT,
            position={"type": ["integer", "null"], "minimum": 0},
            release={"type": ["integer", "null"], "minimum": 1},
        ),
        "Amendments": _object(**of, amendments=_list(_ref("Entry"))),
        "Status": _object(
            **of,
            **dict.fromkeys(("stored", "learned", "restores"), _COUNT),
            retired=_list(_TEXT),
            amendments=_list(_ref("Entry")),
        ),
        "Certificates": _object(learned=_COUNT, certificates=_ANYTHING),
        "Estimates": _object(learned=_COUNT, **dict.fromkeys(_OF_ESTIMATES, _ANYTHING)),
        "Diagnosis": _object(
            learned=_COUNT, sources=_ANYTHING, audit=_ANYTHING, warnings=_ANYTHING
        ),
        "Gain": _object(learned=_COUNT, gain=_ANYTHING, words=_list(_TEXT)),
        "Releases": _object(current=_COUNT),
        "Error": _object(error=_TEXT, reason=_TEXT) | {"required": ["error"]},
    }
