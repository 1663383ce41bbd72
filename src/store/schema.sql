-- The tables of one generation. Ids are dense and follow (path, start byte), so that rows sort by id as answers sort by place.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Names of references, rules of edges; `unresolved` counts the references of the name that have no resolved edge.
CREATE TABLE names (id INTEGER PRIMARY KEY, text TEXT NOT NULL, unresolved INTEGER NOT NULL);

-- The manifest. `node` is the file's own node, followed by `nodes - 1` definitions; null for what is left out.
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    slashes INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    node INTEGER,
    nodes INTEGER NOT NULL,
    language TEXT,
    module TEXT,
    hash BLOB,
    size INTEGER,
    lines INTEGER NOT NULL,
    parse_status INTEGER,
    omitted TEXT,
    failure TEXT,
    flags INTEGER NOT NULL,
    pack INTEGER,
    offset INTEGER,
    blob BLOB
);

CREATE TABLE code_nodes (
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    symbol INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    qualified TEXT,
    parent INTEGER,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    name_line INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,
    end_byte INTEGER NOT NULL,
    signature TEXT,
    docstring TEXT
);

-- One row an edge, at the place of its name token; `name` is 0 where the token is the target's own name.
CREATE TABLE code_edges (
    source INTEGER NOT NULL,
    line INTEGER NOT NULL,
    col INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    target INTEGER NOT NULL,
    resolution INTEGER NOT NULL,
    rule INTEGER NOT NULL,
    name INTEGER NOT NULL,
    PRIMARY KEY (source, line, col, kind, target)
) WITHOUT ROWID;

CREATE TABLE diagnostics (
    source INTEGER NOT NULL,
    line INTEGER NOT NULL,
    col INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    reason INTEGER NOT NULL,
    name INTEGER NOT NULL,
    candidates INTEGER NOT NULL,
    PRIMARY KEY (source, line, col, kind, reason)
) WITHOUT ROWID;

CREATE TABLE headings (
    file INTEGER NOT NULL,
    line INTEGER NOT NULL,
    level INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (file, line)
) WITHOUT ROWID;

CREATE VIRTUAL TABLE code_search_fts USING fts5(
    name, place, signature, docstring, headings,
    content = '', tokenize = "unicode61 remove_diacritics 0 tokenchars '_'"
);
