//! The text of a scenario file as steps, and back. Knows no disk and runs nothing.
//!
//! Invariant: a file that was read and not changed is written back byte for byte.

/// One scenario file.
#[derive(Debug)]
pub struct Script {
    /// The first line: what the scenario shows.
    pub title: String,
    lines: Vec<String>,
    pub steps: Vec<Step>,
}

/// One `=== ` line with what stands under it.
#[derive(Clone, Debug)]
pub struct Step {
    /// Line of its head, from 1.
    pub line: usize,
    /// Without the `=== `.
    pub head: String,
    pub body: Vec<String>,
}

impl Script {
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines: Vec<String> = text.split_inclusive('\n').map(|line| line.trim_end_matches('\n').to_owned()).collect();
        let title = lines.first().cloned().unwrap_or_default();
        if title.trim().is_empty() || title.starts_with("=== ") {
            return Err("the first line must say what the scenario shows".to_owned());
        }
        let mut steps: Vec<Step> = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            if let Some(head) = line.strip_prefix("=== ") {
                steps.push(Step { line: index + 1, head: head.trim().to_owned(), body: Vec::new() });
            } else if let Some(step) = steps.last_mut() {
                step.body.push(line.clone());
            }
        }
        if steps.is_empty() {
            return Err("there is no step".to_owned());
        }
        Ok(Self { title, lines, steps })
    }

    /// Returns the file's text with other bodies for some steps, given by index, in order.
    pub fn with_bodies(&self, bodies: &[(usize, Vec<String>)]) -> String {
        let mut out: Vec<String> = Vec::new();
        let mut next = 0;
        for (index, step) in self.steps.iter().enumerate() {
            let start = step.line;
            out.extend_from_slice(&self.lines[next..start]);
            next = start + step.body.len();
            match bodies.iter().find(|(at, _)| *at == index) {
                Some((_, body)) => {
                    out.extend(body.iter().cloned());
                    // What separates steps for the eye stays.
                    let blank = step.body.iter().rev().take_while(|line| line.is_empty()).count();
                    out.extend(std::iter::repeat_n(String::new(), blank));
                }
                None => out.extend_from_slice(&self.lines[start..next]),
            }
        }
        out.extend_from_slice(&self.lines[next..]);
        let mut text = out.join("\n");
        text.push('\n');
        text
    }
}

/// One file of a `tree` step.
#[derive(Debug, PartialEq, Eq)]
pub struct TreeFile {
    pub path: String,
    pub content: FileContent,
}

#[derive(Debug, PartialEq, Eq)]
pub enum FileContent {
    Bytes(Vec<u8>),
    /// A symbolic link to this place.
    Link(String),
}

/// Reads the body of a `tree` step: `//- path` before each file's text; `//- path -> place` is a link; words after the path change how
/// the text is written, as [`file`] says.
pub fn tree_files(body: &[String]) -> Result<Vec<TreeFile>, String> {
    let mut files: Vec<(String, Vec<&str>)> = Vec::new();
    for line in body {
        if let Some(head) = line.strip_prefix("//- ") {
            files.push((head.trim().to_owned(), Vec::new()));
        } else if let Some((_, lines)) = files.last_mut() {
            lines.push(line);
        } else if !line.is_empty() {
            return Err(format!("`{line}` stands before the first `//- path`"));
        }
    }
    files
        .into_iter()
        .map(|(head, mut lines)| {
            if let Some((path, place)) = head.split_once(" -> ") {
                return Ok(TreeFile { path: path.to_owned(), content: FileContent::Link(place.to_owned()) });
            }
            while lines.last() == Some(&"") {
                lines.pop();
            }
            let (path, bytes) = file(&head, &lines)?;
            Ok(TreeFile { path, content: FileContent::Bytes(bytes) })
        })
        .collect()
}

/// Returns the path and the bytes of a file whose head is its path and words about how it is written: `crlf`, `bom`, `no-newline`, and
/// `escaped` for a text in which [`unescaped`] finds what no editor shows.
pub fn file(head: &str, lines: &[&str]) -> Result<(String, Vec<u8>), String> {
    let mut words = head.split(' ');
    let path = words.next().unwrap_or_default().to_owned();
    let (mut end, mut start, mut last, mut escapes) = ("\n", "", true, false);
    for word in words {
        match word {
            "crlf" => end = "\r\n",
            "bom" => start = "\u{feff}",
            "no-newline" => last = false,
            "escaped" => escapes = true,
            other => return Err(format!("`{other}` is no way to write a file")),
        }
    }
    let mut text = format!("{start}{}", lines.join(end));
    if last && !lines.is_empty() {
        text.push_str(end);
    }
    Ok((path, if escapes { unescaped(&text)? } else { text.into_bytes() }))
}

/// Replaces `\r`, `\f`, `\v`, `\0`, `\xff` (a byte) and `\u{2028}` (a character); `\\` is a backslash.
pub fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let wrong = || format!("`\\{}` is no escape", after.chars().take(8).collect::<String>());
        let number = |digits: &str| u32::from_str_radix(digits, 16).map_err(|_| wrong());
        let mut characters = after.chars();
        let length = match characters.next().ok_or_else(wrong)? {
            'r' => {
                bytes.push(b'\r');
                1
            }
            'f' => {
                bytes.push(0x0c);
                1
            }
            'v' => {
                bytes.push(0x0b);
                1
            }
            '0' => {
                bytes.push(0);
                1
            }
            '\\' => {
                bytes.push(b'\\');
                1
            }
            'x' => {
                let digits = after.get(1..3).ok_or_else(wrong)?;
                bytes.push(u8::try_from(number(digits)?).map_err(|_| wrong())?);
                3
            }
            'u' => {
                let digits = after.strip_prefix("u{").and_then(|rest| rest.split_once('}')).ok_or_else(wrong)?.0;
                let character = char::from_u32(number(digits)?).ok_or_else(wrong)?;
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                digits.len() + 3
            }
            _ => return Err(wrong()),
        };
        rest = &after[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Applies the `-` and `+` lines of an `edit` step to a text. Each `-` line must match exactly one line; the `+` lines after it take its
/// place, with the line end it had, and those that follow no `-` line go to the end.
pub fn edited(text: &str, body: &[String]) -> Result<String, String> {
    let mut lines: Vec<Option<String>> = text.split_inclusive('\n').map(|line| Some(line.to_owned())).collect();
    let mut inserts: Vec<(usize, String)> = Vec::new();
    let mut at = lines.len();
    let mut end = "\n";
    for line in body.iter().filter(|line| !line.is_empty()) {
        if let Some(old) = line.strip_prefix('-') {
            let matches = |have: &str| have.trim_end_matches(['\n', '\r']) == old;
            let found: Vec<usize> = lines
                .iter()
                .enumerate()
                .filter(|(_, have)| have.as_deref().is_some_and(matches))
                .map(|(index, _)| index)
                .collect();
            let [index] = found[..] else {
                return Err(format!("`{old}` stands {} times in the file, not once", found.len()));
            };
            end = if lines[index].as_deref().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
            lines[index] = None;
            at = index;
        } else if let Some(new) = line.strip_prefix('+') {
            inserts.push((at, format!("{new}{end}")));
        } else {
            return Err(format!("`{line}` begins with neither `-` nor `+`"));
        }
    }
    let mut out = String::new();
    for index in 0..=lines.len() {
        for (_, new) in inserts.iter().filter(|(at, _)| *at == index) {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(new);
        }
        if let Some(Some(line)) = lines.get(index) {
            out.push_str(line);
        }
    }
    Ok(out)
}

/// Splits a command line at blanks; single or double quotes keep blanks together.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote, mut started) = (Vec::new(), String::new(), None, false);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => {
                quote = Some(character);
                started = true;
            }
            (None, ' ') => {
                if started || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                started = false;
            }
            (None, c) => word.push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote is left open in `{line}`"));
    }
    if started || !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

/// What the runner itself must get right, listed among the scenarios as `runner`.
pub fn check() -> Result<(), String> {
    let same = |have: &str, want: &str| if have == want { Ok(()) } else { Err(format!("{have:?} is not {want:?}")) };
    let body = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();

    let text = "Title.\nProse.\n=== tree\n//- a.py\nx = 1\n\n=== $ sync\nold\n\n=== ran\n";
    let script = Script::parse(text)?;
    same(&script.with_bodies(&[]), text)?;
    same(&script.with_bodies(&[(1, body("new\nlines"))]), &text.replace("old\n", "new\nlines\n"))?;
    same(&Script::parse("=== tree\n").err().unwrap_or_default(), "the first line must say what the scenario shows")?;

    let files = tree_files(&body("//- a.py\nx\n\n//- b.py crlf bom\ny\nz\n//- l -> a.py\n//- e.py"))?;
    same(
        &format!("{files:?}"),
        &format!(
            "{:?}",
            [
                TreeFile { path: "a.py".into(), content: FileContent::Bytes(b"x\n".into()) },
                TreeFile { path: "b.py".into(), content: FileContent::Bytes("\u{feff}y\r\nz\r\n".into()) },
                TreeFile { path: "l".into(), content: FileContent::Link("a.py".into()) },
                TreeFile { path: "e.py".into(), content: FileContent::Bytes(Vec::new()) },
            ]
        ),
    )?;

    same(&edited("a\nb\nc\n", &body("-b\n+B\n+bb"))?, "a\nB\nbb\nc\n")?;
    same(&edited("a\nb", &body("+c"))?, "a\nb\nc\n")?;
    same(&edited("a\r\nb\r\n", &body("-a\n+c\n+d"))?, "c\r\nd\r\nb\r\n")?;
    same(&format!("{:?}", unescaped("a\\r\\xff\\u{85}\\\\z")?), &format!("{:?}", b"a\r\xff\xc2\x85\\z"))?;
    same(&unescaped("\\q").err().unwrap_or_default(), "`\\q` is no escape")?;
    same(&edited("a\na\n", &body("-a")).err().unwrap_or_default(), "`a` stands 2 times in the file, not once")?;
    same(&format!("{:?}", words("explore \"a b\" --path ''")?), r#"["explore", "a b", "--path", ""]"#)
}
