-- Made after the rows, which is quicker than with them.
CREATE UNIQUE INDEX files_path ON files (path);
CREATE INDEX files_module ON files (module) WHERE module IS NOT NULL;
CREATE UNIQUE INDEX names_text ON names (text);
CREATE INDEX nodes_name ON code_nodes (name COLLATE NOCASE);
CREATE INDEX nodes_symbol ON code_nodes (symbol);
CREATE INDEX edges_target ON code_edges (target);
