// Package wire reads the worker's lines: it cuts them, and binds their JSON to Go values.
package wire

import (
	"bytes"
	"errors"
	"io"
)

// MaxLine is the longest line of a worker that a host reads, in bytes without the newline (PROTOCOL.md, [H-5]).
const MaxLine = 1 << 20

// ErrLineTooLong reports a line of more than MaxLine bytes, whether or not its newline has come.
var ErrLineTooLong = errors.New("a line longer than 1 MiB")

const readBytes = 64 << 10

// Lines cuts a stream into lines. It is not bufio.Scanner, whose limit is 64 KiB and which passes half a line on.
type Lines struct {
	source     io.Reader
	buffer     []byte
	start, end int // the unread bytes of buffer
	scanned    int // bytes after start that contain no newline
}

// NewLines returns the lines of source.
func NewLines(source io.Reader) *Lines {
	return &Lines{source: source, buffer: make([]byte, 2*readBytes)}
}

// Next returns the next line without its newline, valid until the next call. At the end of the stream it discards half a
// line and returns io.EOF.
func (l *Lines) Next() ([]byte, error) {
	for {
		unread := l.buffer[l.start:l.end]
		if i := bytes.IndexByte(unread[l.scanned:], '\n'); i >= 0 {
			length := l.scanned + i
			if length > MaxLine {
				return unread[:MaxLine], ErrLineTooLong
			}
			l.start, l.scanned = l.start+length+1, 0
			return unread[:length], nil
		}
		l.scanned = len(unread)
		if l.scanned > MaxLine {
			return unread[:MaxLine], ErrLineTooLong
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads once, after it has made space.
func (l *Lines) fill() error {
	if l.start > 0 {
		copy(l.buffer, l.buffer[l.start:l.end])
		l.start, l.end = 0, l.end-l.start
	}
	if len(l.buffer)-l.end < readBytes {
		l.buffer = append(l.buffer, make([]byte, len(l.buffer))...)
	}
	n, err := l.source.Read(l.buffer[l.end:])
	l.end += n
	if n > 0 {
		return nil
	}
	return err
}
