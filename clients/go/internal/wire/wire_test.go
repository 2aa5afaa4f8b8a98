package wire

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

type token struct {
	ID       string  `json:"id"`
	Event    string  `json:"event"`
	Token    string  `json:"token"`
	TokenIDs []int64 `json:"token_ids"`
	Choice   int     `json:"choice,omitzero"`
}

func FuzzAPlainTokenIsReadAsAnyOtherLine(f *testing.F) {
	for _, line := range []string{
		`{"event":"token","id":"1","token":"Hello","token_ids":[19556]}`,
		`{"event":"token","id":"12","token":"","token_ids":[]}`,
		`{"event":"token","id":"1","token":"a\n\"b\\ \t\/","token_ids":[0,1,23]}`,
		`{"event":"token","id":"1","token":"é漢😀","token_ids":[1]}`,
		`{"event":"token","id":"1","token":"\u00e9\ud83d","token_ids":[1]}`,
		`{"event":"token","id":"1","token":"x","token_ids":[01]}`,
		`{"event":"token","id":"1","token":"x","token_ids":[1,]}`,
		`{"event":"token","id":"1","token":"x","token_ids":[-1]}`,
		`{"event":"token","id":"1","token":"x","token_ids":[9007199254740991]}`,
		`{"event":"token","id":"1","token":"x","token_ids":[1],"choice":2}`,
		`{"event":"token","id":"1","token":"x","token_ids":[1]}}`,
		"{\"event\":\"token\",\"id\":\"1\",\"token\":\"\xff\",\"token_ids\":[1]}",
		"{\"event\":\"token\",\"id\":\"1\",\"token\":\"\x00\",\"token_ids\":[1]}",
		`{"event":"token","id":"1","token":"x","token_ids":[],"token_ids":[2]}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		original := string(line)
		plain, ok := ParsePlainToken(line)
		if string(line) != original {
			t.Fatalf("the line %q became %q", original, line)
		}
		if !ok {
			return
		}
		var bound token
		object, err := Parse(line)
		if err == nil {
			err = Bind(object, &bound)
		}
		want := token{ID: string(plain.ID), Event: "token", Token: plain.Text, TokenIDs: plain.TokenIDs}
		if err != nil || !reflect.DeepEqual(bound, want) {
			t.Errorf("%q: %v: %+v, not %+v", line, err, bound, want)
		}
	})
}

func TestThePlainFormIsThatOfTheWorker(t *testing.T) {
	line := `{"event":"token","id":"3","token":"a \"b\"\n","token_ids":[216,36]}`
	plain, ok := ParsePlainToken([]byte(line))
	if !ok || string(plain.ID) != "3" || plain.Text != "a \"b\"\n" || !reflect.DeepEqual(plain.TokenIDs, []int64{216, 36}) {
		t.Errorf("%v: %+v", ok, plain)
	}
}

// lines returns all lines of a stream, and the error at its end.
func lines(source io.Reader) (read []string, err error) {
	for cut := NewLines(source); ; {
		line, err := cut.Next()
		if err != nil {
			return read, err
		}
		read = append(read, string(line))
	}
}

func TestLinesAreCutWhereverReadsEnd(t *testing.T) {
	text := "a\n\n" + strings.Repeat("b", 300_000) + "\nc\r\nhalf"
	want := []string{"a", "", strings.Repeat("b", 300_000), "c\r"}
	for name, source := range map[string]io.Reader{
		"whole":     strings.NewReader(text),
		"bytes":     iotest.OneByteReader(strings.NewReader(text)),
		"halves":    iotest.HalfReader(strings.NewReader(text)),
		"with data": iotest.DataErrReader(strings.NewReader(text)),
	} {
		if read, err := lines(source); err != io.EOF || !reflect.DeepEqual(read, want) {
			t.Errorf("%s: %v after %d lines", name, err, len(read))
		}
	}
}

// endless repeats a byte.
type endless byte

func (e endless) Read(buffer []byte) (int, error) {
	for i := range buffer {
		buffer[i] = byte(e)
	}
	return len(buffer), nil
}

func TestALineOfOver1MiBIsAnErrorBeforeItsEnd(t *testing.T) {
	longest := strings.Repeat("x", MaxLine)
	if read, err := lines(strings.NewReader(longest + "\n")); err != io.EOF || len(read) != 1 {
		t.Errorf("%v after %d lines", err, len(read))
	}
	if read, err := lines(strings.NewReader("a\n" + longest + "x\nb\n")); !errors.Is(err, ErrLineTooLong) || len(read) != 1 {
		t.Errorf("%v after %d lines", err, len(read))
	}
	if _, err := lines(endless(' ')); !errors.Is(err, ErrLineTooLong) {
		t.Error(err)
	}
}

func TestMembersAreBoundStrictly(t *testing.T) {
	for line, problem := range map[string]string{
		`{"id":"1","event":"token","token":"x","token_ids":[1],"choice":null,"new":{"a":1}}`: "",
		`{"ID":"1","event":"token","token":"x","token_ids":[]}`:                              "`id` is missing",
		`{"id":"1","event":"token","token":null,"token_ids":[]}`:                             "`token` is missing",
		`{"id":"1","event":"token","token":7,"token_ids":[]}`:                                "`token`: must be a string",
		`{"id":"1","event":"token","token":"x","token_ids":{}}`:                              "`token_ids`: must be a list",
		`{"id":"1","event":"token","token":"x","token_ids":[1,null]}`:                        "`token_ids`: item 1: must be an integer",
		`{"id":"1","event":"token","token":"x","token_ids":[1.5]}`:                           "must be an integer",
		`[1]`:     "not a JSON object",
		`{} {}`:   "more than one value",
		`{"a":`:   "not JSON",
		"\xff":    "not UTF-8",
		`{"a":1}`: "`id` is missing",
	} {
		var bound token
		object, err := Parse([]byte(line))
		if err == nil {
			err = Bind(object, &bound)
		}
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: the error is %v", line, err)
		}
	}
}
