-- The tables of one generation. Ids follow (path, start byte), so that rows sort by id as answers sort by place. They have gaps, so that
-- what an edit adds finds a place between its neighbours and the rest keeps its ids.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Names of references, rules of edges; `unresolved` counts the references of the name that have no resolved edge.
CREATE TABLE names (id INTEGER PRIMARY KEY, text TEXT NOT NULL, unresolved INTEGER NOT NULL);

-- The manifest. The id of an included file is that of its own node; its definitions follow up to `last`, `nodes` with the file in all.
-- `refs` is the digest of what its references came to.
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    slashes INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    last INTEGER NOT NULL,
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
    blob BLOB,
    refs BLOB
);

CREATE TABLE code_nodes (
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    symbol INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    qualified TEXT,
    ordinal INTEGER NOT NULL,
    parent INTEGER,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    name_line INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,
    end_byte INTEGER NOT NULL,
    signature TEXT,
    docstring TEXT
);

-- One row an edge, at the place of its name token; `name` is 0 where the token is the target's own name. Lines count from the first
-- line of the source, so that an edit leaves the rows of definitions below it as they are; so do those of diagnostics.
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
    content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0 tokenchars '_'"
);
