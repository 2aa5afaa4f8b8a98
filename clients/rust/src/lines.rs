/// Longest line of a worker, in bytes without the newline (PROTOCOL.md, [H-5]).
pub(crate) const MAX_LINE: usize = 1 << 20;

/// Cuts a stream into lines. Half a line at the end is never returned.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    start: usize,
    scanned: usize,
}

impl Lines {
    pub fn push(&mut self, data: &[u8]) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(data);
    }

    /// Return the next line without its newline, None if it has not come yet, or the beginning of a line that is too long.
    pub fn next(&mut self) -> Option<Result<&[u8], &[u8]>> {
        let found = self.buffer[self.scanned..].iter().position(|&byte| byte == b'\n');
        let end = found.map_or(self.buffer.len(), |offset| self.scanned + offset);
        let line = self.start..end;
        self.scanned = end;
        if line.len() > MAX_LINE {
            return Some(Err(&self.buffer[line.start..line.start + MAX_LINE]));
        }
        found?;
        self.start = end + 1;
        self.scanned = self.start;
        Some(Ok(&self.buffer[line]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_wherever_the_data_is_divided() {
        let mut lines = Lines::default();
        lines.push(b"one\ntw");
        assert_eq!(lines.next(), Some(Ok(&b"one"[..])));
        assert_eq!(lines.next(), None);
        lines.push(b"o\n\nhalf");
        assert_eq!(lines.next(), Some(Ok(&b"two"[..])));
        assert_eq!(lines.next(), Some(Ok(&b""[..])));
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn a_line_has_at_most_1_mib_with_and_without_its_newline() {
        for end in ["", "\n"] {
            let mut lines = Lines::default();
            lines.push("x".repeat(MAX_LINE).as_bytes());
            assert_eq!(lines.next(), None);
            lines.push(b"x");
            lines.push(end.as_bytes());
            assert!(matches!(lines.next(), Some(Err(line)) if line.len() == MAX_LINE));
        }
        let mut lines = Lines::default();
        lines.push(("x".repeat(MAX_LINE) + "\n").as_bytes());
        assert!(matches!(lines.next(), Some(Ok(line)) if line.len() == MAX_LINE));
    }
}
