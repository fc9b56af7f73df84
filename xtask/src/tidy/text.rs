//! A Rust file with its comments and literals set apart from its code.

/// The lines of a file.
pub(crate) struct Source<'t> {
    /// As written.
    pub(crate) lines: Vec<&'t str>,
    /// The same lines with comments and the insides of literals replaced by blanks.
    pub(crate) code: Vec<String>,
}

/// What the reader is inside of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Code,
    /// `/* */`, which nest.
    Comment(u32),
    /// A string; its number of `#`, or none if it has escapes.
    Text(Option<usize>),
}

impl<'t> Source<'t> {
    /// Reads a file.
    pub(crate) fn new(text: &'t str) -> Source<'t> {
        let lines: Vec<&str> = text.lines().collect();
        let mut inside = Inside::Code;
        let code = lines.iter().map(|line| blank(line, &mut inside)).collect();
        Source { lines, code }
    }
}

/// The code of one line.
fn blank(line: &str, inside: &mut Inside) -> String {
    let chars: Vec<char> = line.chars().collect();
    let starts = |at: usize, what: &str| {
        what.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c))
    };
    let mut code = String::with_capacity(line.len());
    let mut at = 0;
    while at < chars.len() {
        let taken = match *inside {
            Inside::Comment(depth) if starts(at, "*/") => {
                *inside = if depth == 1 { Inside::Code } else { Inside::Comment(depth - 1) };
                2
            }
            Inside::Comment(depth) if starts(at, "/*") => {
                *inside = Inside::Comment(depth + 1);
                2
            }
            Inside::Text(None) if chars[at] == '\\' => 2,
            Inside::Text(None) if chars[at] == '"' => {
                *inside = Inside::Code;
                1
            }
            Inside::Text(Some(marks)) if starts(at, &format!("\"{}", "#".repeat(marks))) => {
                *inside = Inside::Code;
                1 + marks
            }
            Inside::Comment(_) | Inside::Text(_) => 1,
            Inside::Code if starts(at, "//") => break,
            Inside::Code if starts(at, "/*") => {
                *inside = Inside::Comment(1);
                2
            }
            Inside::Code => match literal(&chars, at) {
                Some((len, next)) => {
                    *inside = next;
                    len
                }
                None => {
                    code.push(chars[at]);
                    at += 1;
                    continue;
                }
            },
        };
        code.extend(std::iter::repeat_n(' ', taken.min(chars.len() - at)));
        at += taken;
    }
    code
}

/// A literal that begins here: how much of it to skip, and what the reader is then inside of.
fn literal(chars: &[char], at: usize) -> Option<(usize, Inside)> {
    let is_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match chars[at] {
        '"' => Some((1, Inside::Text(None))),
        'r' if !is_word || chars[at - 1] == 'b' => {
            let marks = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
            let is_raw = chars.get(at + 1 + marks) == Some(&'"');
            is_raw.then_some((2 + marks, Inside::Text(Some(marks))))
        }
        // A character, not a lifetime: 'x' or an escape.
        '\'' if chars.get(at + 1) == Some(&'\\') => {
            let rest = chars.get(at + 3..)?.iter().position(|&c| c == '\'')?;
            Some((rest + 4, Inside::Code))
        }
        '\'' if chars.get(at + 2) == Some(&'\'') => Some((3, Inside::Code)),
        _ => None,
    }
}

/// Where a word stands alone in code.
pub(crate) fn find_word(code: &str, word: &str) -> Option<usize> {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn comments_and_literals_are_blanked() {
        let text = "a(\"x // {\"); // b\nlet c = '{'; /* d\n */ e<'f>(r#\"g\"}\"#, b'\\'', h)";
        let code = Source::new(text).code.join("\n");
        let words: String = code.split_whitespace().collect();
        assert_eq!(words, "a();letc=;e<'f>(,b,h)");
    }
}
