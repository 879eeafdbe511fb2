//! Text as JSON.

use std::fmt::{self, Write as _};

/// Prints a text as a JSON string. `<` is escaped, so that the text may stand in a script of a
/// page.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                '<' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' | '\u{7f}' => {
                    write!(f, "\\u{:04x}", u32::from(character))?;
                }
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::Text;
    use crate::probe::json_reader::Value;

    #[test]
    fn every_character_survives() {
        let all: String = (0..0x3000).filter_map(char::from_u32).collect();
        let text = Text(&all).to_string();
        assert!(!text.contains(['<', '\n', '\u{2028}']));
        assert_eq!(Value::read(&text), Value::Text(all));
    }
}
