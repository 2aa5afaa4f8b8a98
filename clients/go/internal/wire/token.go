package wire

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

var (
	tokenStart = []byte(`{"event":"token","id":"`)
	tokenText  = []byte(`","token":"`)
	tokenIDs   = []byte(`","token_ids":[`)
	tokenEnd   = []byte(`]}`)
)

// A PlainToken is a token event that has only the fields of every token event.
type PlainToken struct {
	ID       []byte // a part of the line
	Text     string
	TokenIDs []int64
}

// ParsePlainToken returns the token event of a line in the form that lmwire's worker writes, and whether the line has
// that form. It exists for speed: it costs a tenth of Parse and Bind, and almost all lines are such events.
func ParsePlainToken(line []byte) (token PlainToken, ok bool) {
	rest, ok := bytes.CutPrefix(line, tokenStart)
	if !ok {
		return token, false
	}
	end := bytes.IndexByte(rest, '"')
	if end <= 0 || bytes.IndexByte(rest[:end], '\\') >= 0 || !isPlain(rest[:end]) {
		return token, false
	}
	token.ID = rest[:end]
	if rest, ok = bytes.CutPrefix(rest[end:], tokenText); !ok {
		return token, false
	}
	if token.Text, rest, ok = cutText(rest); !ok {
		return token, false
	}
	if rest, ok = bytes.CutPrefix(rest, tokenIDs); !ok {
		return token, false
	}
	if rest, ok = bytes.CutSuffix(rest, tokenEnd); !ok {
		return token, false
	}
	token.TokenIDs, ok = parseIntegers(rest)
	return token, ok
}

// cutText returns the text of a JSON string whose opening quote is cut, and the rest from the closing quote on.
func cutText(from []byte) (text string, rest []byte, ok bool) {
	var unescaped *strings.Builder
	start := 0
	for i := 0; i < len(from); i++ {
		switch from[i] {
		case '"':
			if !isPlain(from[start:i]) {
				return "", nil, false
			}
			if unescaped == nil {
				return string(from[:i]), from[i:], true
			}
			unescaped.Write(from[start:i])
			return unescaped.String(), from[i:], true
		case '\\':
			character := simpleEscape(from, i+1)
			if character == 0 || !isPlain(from[start:i]) {
				return "", nil, false
			}
			if unescaped == nil {
				unescaped = &strings.Builder{}
			}
			unescaped.Write(from[start:i])
			unescaped.WriteByte(character)
			i++
			start = i + 1
		}
	}
	return "", nil, false
}

// simpleEscape returns the character of an escape without a number, or 0 for another escape.
func simpleEscape(from []byte, at int) byte {
	if at >= len(from) {
		return 0
	}
	switch from[at] {
	case '"', '\\', '/':
		return from[at]
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	default:
		return 0
	}
}

// isPlain returns whether the bytes are UTF-8 that JSON strings contain without escapes.
func isPlain(text []byte) bool {
	for _, character := range text {
		if character < ' ' {
			return false
		}
	}
	return utf8.Valid(text)
}

func parseIntegers(list []byte) ([]int64, bool) {
	if len(list) == 0 {
		return []int64{}, true
	}
	integers := make([]int64, 0, bytes.Count(list, []byte(","))+1)
	for more := true; more; {
		var digits []byte
		digits, list, more = bytes.Cut(list, []byte(","))
		if len(digits) == 0 || len(digits) > 15 || digits[0] == '0' && len(digits) > 1 {
			return nil, false
		}
		var number int64
		for _, digit := range digits {
			if digit < '0' || digit > '9' {
				return nil, false
			}
			number = 10*number + int64(digit-'0')
		}
		integers = append(integers, number)
	}
	return integers, true
}
