"""The OpenAPI document: the service, described to other programs."""

from importlib.metadata import version
from typing import Any

from sottovoce.server.settings import Settings
from sottovoce.shared.methods import method_names

_EXPERIMENT = {
    "name": "experiment",
    "in": "path",
    "required": True,
    "description": "The fingerprint of the experiment.",
    "schema": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
}
_VERSION = {
    "name": "version",
    "in": "path",
    "required": True,
    "schema": {"type": "integer", "minimum": 1, "maximum": 4294967295},
}
_KNOWN = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the copy that one has.",
    "schema": {"type": "string"},
}
_ADMIN: list[dict[str, list[str]]] = [{"administrator": []}]


def document(settings: Settings) -> dict[str, Any]:
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
            "/reports": {"post": _post_report()},
            "/reports/batch": {"post": _post_batch(settings)},
            "/experiments": {"post": _post_experiment(), "get": _list_experiments()},
            "/experiments/{experiment}": {"get": _page()},
            "/experiments/{experiment}/status": {"get": _about("How far it is.", "Status")},
            "/experiments/{experiment}/certificates": {
                "get": _about("Why each arm was dropped.", "Certificates")
            },
            "/experiments/{experiment}/estimates": {
                "get": _about("What is known of each arm in each bin.", "Estimates")
            },
            "/experiments/{experiment}/diagnosis": {
                "get": _about("What each auxiliary population brings.", "Diagnosis")
            },
            "/experiments/{experiment}/releases": {
                "get": _about("Which releases there are: from 1 to the current one.", "Releases")
            },
            "/experiments/{experiment}/releases/current": {
                "get": _release("The newest release, signed.", [_EXPERIMENT, _KNOWN])
            },
            "/experiments/{experiment}/releases/{version}": {
                "get": _release("Any release, signed.", [_EXPERIMENT, _VERSION, _KNOWN])
            },
            "/keys": {"get": _plain("The public key that signs.", _object("keys"))},
            "/health": {"get": _plain("Whether this worker runs.", _object("status"))},
            "/ready": {"get": _ready()},
            "/metrics": {"get": _text("Counts in Prometheus's format.", "text/plain")},
            "/openapi.json": {"get": _plain("This document.", {"type": "object"})},
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"administrator": {"type": "http", "scheme": "bearer"}},
        },
    }


def _post_report() -> dict[str, Any]:
    return {
        "summary": "Store one report.",
        "description": "Answered once it is durably stored; sent again, it is not counted again.",
        "requestBody": _reports(_ref("Report")),
        "responses": {
            "200": _json("It is stored, now or already.", _ref("Receipt")),
            "400": _error("It is no report."),
            "404": _error("Its experiment, population or release is unknown."),
            "422": _error("It does not fit its release."),
            **_refusals(),
        },
    }


def _post_batch(settings: Settings) -> dict[str, Any]:
    several = {"type": "array", "items": _ref("Report"), "maxItems": settings.most_reports}
    return {
        "summary": f"Store up to {settings.most_reports} reports.",
        "description": "Those that are refused are listed and do not keep the others out.",
        "requestBody": _reports(several),
        "responses": {
            "200": _json("What became of them.", _ref("Receipt")),
            "400": _error("It is no batch, or a report of a JSON list is no report."),
            "422": _error("A number in a JSON list is not finite."),
            **_refusals(),
        },
    }


def _post_experiment() -> dict[str, Any]:
    return {
        "summary": "Begin an experiment.",
        "security": _ADMIN,
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": _ref("Settings")},
                "application/toml": {"schema": {"type": "string"}},
            },
        },
        "responses": {
            "200": _json("It was there already.", _ref("Experiment")),
            "201": _json("It has begun.", _ref("Experiment")),
            "400": _error("It is neither JSON nor TOML."),
            "422": _error("It cannot be."),
            **_tokens(),
            **_refusals(),
        },
    }


def _list_experiments() -> dict[str, Any]:
    listed = {"type": "array", "items": _ref("Experiment")}
    schema = {"type": "object", "required": ["experiments"], "properties": {"experiments": listed}}
    return {
        "summary": "List all experiments.",
        "security": _ADMIN,
        "responses": {"200": _json("All of them.", schema), **_tokens(), **_away()},
    }


def _about(summary: str, name: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": [_EXPERIMENT],
        "responses": {"200": _json(summary, _ref(name)), **_unknown(), **_away()},
    }


def _page() -> dict[str, Any]:
    page = _text("All of it, for people.", "text/html")
    responses = {**page["responses"], **_unknown(), **_away()}
    return page | {"parameters": [_EXPERIMENT], "responses": responses}


def _release(summary: str, parameters: list[Any]) -> dict[str, Any]:
    found = _json(summary, _ref("SignedRelease"))
    found["headers"] = {"ETag": {"schema": {"type": "string"}}}
    return {
        "summary": summary,
        "parameters": parameters,
        "responses": {
            "200": found,
            "304": {"description": "The copy that one has is this one."},
            **_unknown(),
            **_away(),
        },
    }


def _ready() -> dict[str, Any]:
    ready = _plain("Whether reports can be stored just now.", _object("status"))
    return ready | {"responses": {**ready["responses"], **_away()}}


def _plain(summary: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": _json(summary, schema)}}


def _text(summary: str, kind: str) -> dict[str, Any]:
    content = {kind: {"schema": {"type": "string"}}}
    found = {"description": summary, "content": content}
    return {"summary": summary, "responses": {"200": found, **_away()}}


def _reports(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "required": True,
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": schema},
        },
    }


def _refusals() -> dict[str, Any]:
    return {
        "408": _error("It took too long to arrive."),
        "413": _error("It is too large."),
        "415": _error("It is of another type."),
        "429": _error("Too many reports are waiting; later."),
        **_away(),
    }


def _away() -> dict[str, Any]:
    return {
        "503": _error("The database cannot be used just now; later."),
        "507": _error("Its disk is full; later."),
    }


def _unknown() -> dict[str, Any]:
    return {"404": _error("There is no such experiment or release.")}


def _tokens() -> dict[str, Any]:
    return {"401": _error("No token was shown."), "403": _error("It is not the token.")}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _error(description: str) -> dict[str, Any]:
    return _json(description, _ref("Error"))


def _object(*names: str) -> dict[str, Any]:
    return {"type": "object", "required": list(names)}


def _whole(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _closed(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Describe an object that has these properties and no others."""
    return {
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        "properties": properties,
    }


def _report(**answer: Any) -> dict[str, Any]:
    return _closed(
        {
            "sottovoce": {"const": 1},
            "kind": {"const": "report"},
            "experiment": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
            "release": _whole(0, 2**32 - 1),
            "population": _whole(0, 2**16 - 1),
            "nonce": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            **answer,
        }
    )


def _settings() -> dict[str, Any]:
    """Describe what an experiment is made of: the keys of its TOML file."""
    name = {"type": "string", "minLength": 1}
    names = {"type": "array", "items": name, "minItems": 2, "uniqueItems": True}
    ends = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    epsilon = {"type": "number", "minimum": 1e-9, "maximum": 1e6}
    shares = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}}
    features = [
        _closed({"name": name, kind: values})
        for kind, values in (("numeric", ends), ("ordinal", names), ("categorical", names))
    ]
    population = {"name": name, "epsilon": epsilon, "users": _whole(0, 2**53), "behaviour": shares}
    auxiliary = _closed(population, optional=("behaviour",))
    method = {"type": "object", "required": ["name"]}
    properties = {
        "arms": names,
        "context": {"type": "array", "items": {"oneOf": features}, "minItems": 1},
        "epsilon": epsilon,
        "name": name,
        "horizon": _whole(1, 2**53),
        "auxiliary": {"type": "array", "items": auxiliary},
        "method": {"oneOf": [{"enum": method_names()}, method]},
        "release_every": _whole(1, 2**53),
        "seed": _whole(0, 2**53),
    }
    return _closed(properties, optional=tuple(properties)[3:])


def _schemas() -> dict[str, Any]:
    count = {"type": "integer", "minimum": 0}
    fingerprint = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
    refused = {
        "type": "object",
        "required": ["index", "reason"],
        "properties": {"index": count, "reason": {"type": "string"}},
    }
    return {
        "Report": {"oneOf": [_ref("ReportOfASet"), _ref("ReportOfNumbers")]},
        "ReportOfASet": _report(
            question={"type": "integer", "minimum": 0, "maximum": 65535},
            ranking={"type": "array", "items": _whole(0, 255), "maxItems": 255},
            set={"type": "string", "pattern": "^([0-9a-f]{2})*$"},
        ),
        "ReportOfNumbers": _report(payload={"type": "array", "items": {"type": "number"}}),
        "Settings": _settings(),
        "Receipt": {
            "type": "object",
            "required": ["stored", "repeated", "refused"],
            "properties": {
                "stored": count,
                "repeated": count,
                "refused": {"type": "array", "items": refused},
            },
        },
        "SignedRelease": {
            "type": "object",
            "required": ["sottovoce", "kind", "key", "signature", "release"],
            "properties": {
                "sottovoce": {"const": 1},
                "kind": {"const": "signed release"},
                "key": fingerprint,
                "signature": {"type": "string", "pattern": "^[0-9a-f]{128}$"},
                "release": {"type": "string", "description": "The release's canonical JSON."},
            },
        },
        "Experiment": _object("experiment", "name", "arms", "populations"),
        "Status": _object("experiment", "name", "stored", "learned"),
        "Certificates": _object("learned", "certificates"),
        "Estimates": _object("learned", "estimates"),
        "Diagnosis": _object("learned", "sources", "audit", "warnings"),
        "Releases": _object("current"),
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {"type": "string"}, "reason": {"type": "string"}},
        },
    }
