package lmwire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type vector struct {
	Name    string
	Line    json.RawMessage
	Command string
	Host    string
	Ignored bool
}

// bytes returns the line, which is a text or a list of pieces.
func (v vector) bytes(t *testing.T) []byte {
	t.Helper()
	var text string
	if json.Unmarshal(v.Line, &text) == nil {
		return []byte(text)
	}
	var pieces []json.RawMessage
	if err := json.Unmarshal(v.Line, &pieces); err != nil {
		t.Fatal(err)
	}
	var line []byte
	for _, piece := range pieces {
		var special struct {
			Hex    string
			Repeat string
			Times  int
		}
		if json.Unmarshal(piece, &text) == nil {
			line = append(line, text...)
		} else if err := json.Unmarshal(piece, &special); err != nil {
			t.Fatal(err)
		} else if special.Hex != "" {
			data, err := hex.DecodeString(special.Hex)
			if err != nil {
				t.Fatal(err)
			}
			line = append(line, data...)
		} else {
			line = append(line, strings.Repeat(special.Repeat, special.Times)...)
		}
	}
	return line
}

// vectors returns the entries of a file of protocol/vectors.
func vectors(t *testing.T, name string) (entries []vector) {
	t.Helper()
	file, err := os.Open(filepath.Join(protocolFolder, "vectors", name))
	if err != nil {
		t.Skip("the protocol's files are not beside this module")
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return entries
		}
		var entry vector
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
}

// receive gives a line to a session in which a request "1" is in flight. It returns what that request got, and the
// error for which the host ends the worker.
func receive(line []byte, command string) (events []any, ended bool, violation error) {
	if command == "" {
		command = "generate"
	}
	q := newQueue(defaultQueueLimit)
	c := &connection{config: newConfig(nil), greeted: true, pending: map[string]*pending{"1": {command: command, queue: q}}}
	violation = c.receive(line)
	events, ended, failure := q.take()
	if failure != nil {
		events = append(events, failure)
	}
	return events, ended, violation
}

func TestEveryValidEventIsRead(t *testing.T) {
	for _, entry := range vectors(t, "events.valid.jsonl") {
		line := entry.bytes(t)
		events, ended, err := receive(line, entry.Command)
		var envelope struct{ Event, ID string }
		if json.Unmarshal(line, &envelope) != nil || entry.Ignored || envelope.ID != "1" {
			if err != nil || len(events) > 0 {
				t.Errorf("%s: %v: %v came", entry.Name, err, events)
			}
			continue
		}
		terminal := envelope.Event == "done" || envelope.Event == "error"
		if err != nil || len(events) != 1 || ended != terminal {
			t.Errorf("%s: %v: %v came, ended: %v", entry.Name, err, events, ended)
		}
	}
}

func TestEveryInvalidEventHasTheConsequenceOfTheProtocol(t *testing.T) {
	for _, entry := range vectors(t, "events.invalid.jsonl") {
		events, _, err := receive(entry.bytes(t), entry.Command)
		switch entry.Host {
		case "end":
			if err == nil || len(events) > 0 {
				t.Errorf("%s: the worker goes on, and %v came", entry.Name, events)
			}
		case "ignore":
			if err != nil || len(events) > 0 {
				t.Errorf("%s: %v: %v came", entry.Name, err, events)
			}
		case "accept":
			if err != nil || len(events) != 1 {
				t.Errorf("%s: %v: %v came", entry.Name, err, events)
			}
		case "either":
		default:
			t.Errorf("%s: unknown consequence %q", entry.Name, entry.Host)
		}
	}
}

func TestAnErrorWithoutARequestIsLogged(t *testing.T) {
	var log bytes.Buffer
	c := &connection{config: newConfig([]Option{WithLogger(slog.New(slog.NewTextHandler(&log, nil)))}), greeted: true}
	err := c.receive([]byte(`{"event":"error","error":"what?","code":"parse_error","retryable":false}`))
	if err != nil || !strings.Contains(log.String(), "code=parse_error error=what?") {
		t.Errorf("%v: the log is %q", err, log.String())
	}
}
