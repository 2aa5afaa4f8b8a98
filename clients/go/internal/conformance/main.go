// Command conformance is the driver of this package for `lmwire conformance host`. HOSTS.md of the kit specifies it:
//
//	lmwire conformance host -- go run ./internal/conformance
//
// It reads instructions from stdin and writes its observations to stdout, both as JSON Lines. With -events it also prints
// each event as the library's user gets it, for the test that compares the clients.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"sync"
	"time"

	lmwire "github.com/lmwire/lmwire/clients/go"
)

var shutdownTimeouts = lmwire.ShutdownTimeouts{Quit: time.Second, EOF: time.Second, Term: time.Second}

type instruction struct {
	Do      string
	Name    string
	Command json.RawMessage
	Timeout float64
	Restart bool
	Drain   bool
}

func (i instruction) timeout() time.Duration { return time.Duration(i.Timeout * float64(time.Second)) }

type driver struct {
	command []string
	events  bool
	worker  func(ctx context.Context) (*lmwire.Worker, error)
	close   func() error
	stops   map[string]chan struct{}
	running sync.WaitGroup

	mu  sync.Mutex
	out *json.Encoder
}

func main() {
	d := &driver{stops: map[string]chan struct{}{}, out: json.NewEncoder(os.Stdout)}
	flag.BoolVar(&d.events, "events", false, "print the events")
	flag.Parse()
	if err := json.Unmarshal([]byte(os.Getenv("LMWIRE_WORKER_COMMAND")), &d.command); err != nil {
		log.Fatal(err)
	}
	input := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var next instruction
		if err := input.Decode(&next); err == io.EOF {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		d.run(next)
	}
}

func (d *driver) run(next instruction) {
	switch next.Do {
	case "start":
		d.start(next)
	case "request":
		d.request(next)
	case "cancel":
		close(d.stops[next.Name])
	case "close":
		if next.Drain {
			must(d.drain())
		}
		d.close()
		d.running.Wait()
		d.report("closed", nil)
	default:
		log.Fatalf("unknown instruction %q", next.Do)
	}
}

// report prints one observation.
func (d *driver) report(saw string, members map[string]any) {
	line := map[string]any{"saw": saw}
	for name, value := range members {
		line[name] = value
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.out.Encode(line); err != nil {
		log.Fatal(err)
	}
}

// reportEvent prints an event as the library's user gets it.
func (d *driver) reportEvent(name, kind string, event any) {
	if d.events {
		d.report("event", map[string]any{"name": name, "kind": kind, "event": event})
	}
}

func (d *driver) start(next instruction) {
	options := []lmwire.Option{
		lmwire.WithCommand(d.command[0], d.command[1:]...),
		lmwire.WithShutdownTimeouts(shutdownTimeouts),
	}
	if next.Timeout > 0 {
		options = append(options, lmwire.WithStartTimeout(next.timeout()))
	}
	if next.Restart {
		supervisor := &lmwire.Supervisor{Options: options}
		d.worker, d.close = supervisor.Worker, supervisor.Close
	} else {
		d.startOne(options)
	}
	if _, err := d.worker(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		d.report("start_failed", nil)
		return
	}
	d.report("started", nil)
}

func (d *driver) drain() error {
	worker, err := d.worker(context.Background())
	if err != nil {
		return err
	}
	return worker.Shutdown(context.Background())
}

func (d *driver) startOne(options []lmwire.Option) {
	worker, err := lmwire.Start(context.Background(), options...)
	d.worker = func(context.Context) (*lmwire.Worker, error) { return worker, err }
	d.close = func() error { return nil }
	if worker != nil {
		d.close = worker.Close
	}
}

// request makes a request on a goroutine of its own.
func (d *driver) request(next instruction) {
	ctx, cancel := context.WithCancel(context.Background())
	if next.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, next.timeout())
	}
	stop := make(chan struct{})
	d.stops[next.Name] = stop
	worker, err := d.worker(ctx)
	if err != nil {
		cancel()
		d.failed(next.Name, err)
		return
	}
	d.running.Go(func() {
		defer cancel()
		if err := d.make(ctx, worker, next, lmwire.WithStop(stop)); err != nil {
			d.failed(next.Name, err)
		}
	})
}

func (d *driver) make(ctx context.Context, worker *lmwire.Worker, next instruction, stop lmwire.RequestOption) error {
	command, fields := split(next.Command)
	switch command {
	case "chat":
		return d.answer(next.Name, worker.Chat(ctx, decode[lmwire.ChatParams](fields), stop))
	case "generate":
		return d.answer(next.Name, worker.Generate(ctx, generateParams(fields), stop))
	}
	if err := d.call(ctx, worker, next.Name, command, fields, stop); err != nil {
		return err
	}
	d.report("done", map[string]any{"name": next.Name})
	return nil
}

// call makes a request that has no answer.
func (d *driver) call(ctx context.Context, worker *lmwire.Worker, name, command string, fields []byte, stop lmwire.RequestOption) (err error) {
	var done any
	switch command {
	case "load":
		progress := lmwire.WithProgress(func(progress lmwire.Progress) { d.reportEvent(name, "progress", progress) })
		done, err = worker.Load(ctx, decode[lmwire.LoadParams](fields), stop, progress)
	case "unload":
		_, err = worker.Unload(ctx)
	case "tokenize":
		var tokens *lmwire.Tokens
		if tokens, err = worker.Tokenize(ctx, decode[lmwire.TokenizeParams](fields), stop); err == nil {
			d.report("text", map[string]any{"name": name, "text": tokens.Text})
			done = map[string]any{"token_ids": tokens.IDs, "text": tokens.Text, "count": tokens.Count}
		}
	case "embed":
		var embeddings *lmwire.Embeddings
		if embeddings, err = worker.Embed(ctx, decode[lmwire.EmbedParams](fields), stop); err == nil {
			for index, values := range embeddings.Vectors {
				d.report("vector", map[string]any{"name": name, "index": index, "values": values})
			}
			done = map[string]any{"vectors": embeddings.Vectors, "usage": embeddings.Usage}
		}
	case "transcribe":
		var transcript *lmwire.Transcript
		if transcript, err = worker.Transcribe(ctx, decode[lmwire.TranscribeParams](fields), stop); err == nil {
			d.report("text", map[string]any{"name": name, "text": transcript.Text})
			done = map[string]any{
				"text": transcript.Text, "segments": transcript.Segments, "language": transcript.Language,
				"duration_s": transcript.DurationS, "finish_reason": transcript.FinishReason,
			}
		}
	case "speak":
		var speech *lmwire.Speech
		if speech, err = worker.Speak(ctx, decode[lmwire.SpeakParams](fields), stop); err == nil {
			if len(speech.Samples) > 0 {
				d.report("samples", map[string]any{"name": name, "values": speech.Samples})
			}
			done = map[string]any{
				"samples": speech.Samples, "sample_rate": speech.SampleRate, "seed": speech.Seed,
				"duration_s": speech.DurationS, "finish_reason": speech.FinishReason,
			}
		}
	case "cache":
		_, err = worker.ClearCache(ctx)
	case "info":
		done, err = worker.Info(ctx)
	case "ping":
		done, err = worker.Ping(ctx)
	case "stats":
		done, err = worker.Stats(ctx)
	default:
		log.Fatalf("unknown command %q", command)
	}
	if err == nil && done != nil {
		d.reportEvent(name, "done", done)
	}
	return err
}

// answer reports the events of a chat or a generate.
func (d *driver) answer(name string, events iter.Seq2[lmwire.Event, error]) error {
	var accumulator lmwire.Accumulator
	for event, err := range events {
		if err != nil {
			return err
		}
		accumulator.Add(event)
		d.reportEvent(name, kindOf(event), event)
		if token, ok := event.(*lmwire.Token); ok {
			d.reportToken(name, token)
		}
	}
	response, err := accumulator.Response()
	if err != nil {
		return err
	}
	var reasons []lmwire.FinishReason
	for choice, answer := range response.Answers {
		reasons = append(reasons, answer.FinishReason)
		for _, call := range answer.ToolCalls {
			d.report("tool_call", map[string]any{"name": name, "choice": choice, "call": call})
		}
	}
	done := map[string]any{"name": name, "finish_reason": response.Result.FinishReason}
	if len(reasons) > 1 {
		done["choices"] = reasons
	}
	d.report("done", done)
	return nil
}

func (d *driver) reportToken(name string, token *lmwire.Token) {
	report := map[string]any{"name": name, "choice": token.Choice, "text": token.Token, "channel": token.Channel}
	if token.Logprobs != nil {
		report["logprobs"] = token.Logprobs
	}
	d.report("text", report)
}

func (d *driver) failed(name string, err error) {
	report := map[string]any{"name": name, "code": code(err)}
	var refused *lmwire.RequestError
	if errors.As(err, &refused) {
		report["retryable"] = refused.Retryable
		d.reportEvent(name, "error", refused)
	}
	d.report("failed", report)
}

func kindOf(event lmwire.Event) string {
	switch event.(type) {
	case *lmwire.Token:
		return "token"
	case *lmwire.ToolCallDelta:
		return "tool_call"
	case *lmwire.Progress:
		return "progress"
	default:
		return "done"
	}
}

func code(err error) string {
	var refused *lmwire.RequestError
	var unsupported *lmwire.UnsupportedError
	switch {
	case errors.As(err, &refused):
		return string(refused.Code)
	case errors.As(err, &unsupported):
		return string(lmwire.ErrUnsupported)
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	default: // also for a supervisor that starts no worker
		return string(lmwire.ErrWorkerLost)
	}
}

// split returns the name of a command, and its fields.
func split(line []byte) (command string, fields []byte) {
	var members map[string]json.RawMessage
	must(json.Unmarshal(line, &members))
	must(json.Unmarshal(members["cmd"], &command))
	delete(members, "cmd")
	fields, err := json.Marshal(members)
	must(err)
	return command, fields
}

// decode returns fields as the library's type. A field that the library lacks ends the driver.
func decode[T any](fields []byte) (params T) {
	decoder := json.NewDecoder(bytes.NewReader(fields))
	decoder.DisallowUnknownFields()
	must(decoder.Decode(&params))
	return params
}

// generateParams reads the prompt, a text or token ids, and the other fields.
func generateParams(fields []byte) (params lmwire.GenerateParams) {
	var members map[string]json.RawMessage
	must(json.Unmarshal(fields, &members))
	prompt := members["prompt"]
	delete(members, "prompt")
	rest, err := json.Marshal(members)
	must(err)
	params = decode[lmwire.GenerateParams](rest)
	if prompt[0] == '[' {
		must(json.Unmarshal(prompt, &params.TokenIDs))
	} else {
		must(json.Unmarshal(prompt, &params.Prompt))
	}
	return params
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
