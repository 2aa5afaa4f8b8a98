package lmwire

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
)

// Version is the version of this package. [WithUvx] starts the same version of the worker.
const Version = "0.2.0"

// A Worker is a running worker process. Its methods are safe for concurrent use.
type Worker struct {
	connection *connection
	hello      *Hello
	features   featureSet
	closing    sync.Once
}

// Start starts a worker, and waits until it has answered. Without [WithCommand] it looks for one: see docs/hosts.md. The
// context bounds the start, not the worker's life.
//
// The error is a [*StartError].
func Start(ctx context.Context, options ...Option) (*Worker, error) {
	config := newConfig(options)
	place, err := findWorker(&config)
	if err != nil {
		return nil, &StartError{Err: err}
	}
	conn, err := connect(place.command, config)
	if err != nil {
		return nil, &StartError{Command: place.command, Err: err}
	}
	w := &Worker{connection: conn}
	if err := w.greet(ctx, place); err != nil {
		conn.kill()
		return nil, &StartError{Command: place.command, Err: err}
	}
	return w, nil
}

// greet sends `hello`, and checks that the worker fits.
func (w *Worker) greet(ctx context.Context, place place) error {
	ctx, cancel := context.WithTimeoutCause(ctx, place.startTimeout, fmt.Errorf("it did not answer `hello` in %v", place.startTimeout))
	defer cancel()
	params := helloParams{Protocol: [2]int64{protocolVersion, protocolVersion}, Client: "lmwire-go/" + Version}
	if place.hostWatch {
		params.HostPID = int64(os.Getpid())
	}
	hello, err := call[Hello](ctx, w, "hello", params, nil, nil)
	if err != nil {
		return versionProblem(err)
	}
	w.hello, w.features = hello, newFeatureSet(hello.Features)
	missing := slices.DeleteFunc(slices.Clone(w.connection.config.required), w.features.lists)
	if len(missing) > 0 {
		return fmt.Errorf("it is %s and does not serve %s; install lmwire %s", hello.Worker, strings.Join(missing, ", "), Version)
	}
	return nil
}

// A versionError reports a worker without the host's protocol version.
type versionError struct {
	worker   string
	versions []int64
}

func (e *versionError) Error() string {
	name := e.worker
	if name == "" {
		name = "the worker"
	}
	return fmt.Sprintf("%s speaks protocol %v, and this host protocol %d; install lmwire %s", name, e.versions, protocolVersion, Version)
}

func versionProblem(err error) error {
	var version *versionError
	if errors.As(err, &version) {
		return version
	}
	var refused *RequestError
	if errors.As(err, &refused) && refused.Code == ErrUnsupportedProtocol {
		return &versionError{versions: refused.Protocols}
	}
	return err
}

// Hello returns the worker's reply to the host's greeting.
func (w *Worker) Hello() Hello { return *w.hello }

// PID returns the id of the process that was started: the worker, or a program that leads to it.
func (w *Worker) PID() int { return w.connection.process.PID() }

// Stderr returns the last 64 lines of the worker's stderr.
func (w *Worker) Stderr() []string { return w.connection.process.StderrTail() }

// Done returns a channel that is closed when the worker's process has ended.
func (w *Worker) Done() <-chan struct{} { return w.connection.done }

// Err returns nil while the worker takes requests, and then the [*LostError] with which they fail.
func (w *Worker) Err() error {
	w.connection.mu.Lock()
	defer w.connection.mu.Unlock()
	return w.connection.lost
}

// Close ends the worker, and returns when its process is gone. That takes the [ShutdownTimeouts] at most, and 5 s more
// if the process must be killed. Requests in flight are cancelled, and end with what they have.
//
// It fails only if the system does not end the process.
func (w *Worker) Close() error {
	w.closing.Do(func() { w.connection.close(context.Background(), false) })
	return w.remains()
}

// Shutdown ends the worker after all requests in flight have ended by themselves. When the context ends before that, it
// goes on as [Worker.Close] does, and returns the context's error.
func (w *Worker) Shutdown(ctx context.Context) error {
	w.closing.Do(func() { w.connection.close(ctx, true) })
	return errors.Join(ctx.Err(), w.remains())
}

// remains returns an error if the process has not ended.
func (w *Worker) remains() error {
	select {
	case <-w.connection.done:
		return nil
	default:
		return fmt.Errorf("lmwire: the system does not end the worker's process %d", w.PID())
	}
}

// Load loads a model in place of the present one. It can take minutes; [WithProgress] reports how far it has come.
func (w *Worker) Load(ctx context.Context, params LoadParams, options ...RequestOption) (*Model, error) {
	return call[Model](ctx, w, "load", params, options, nil)
}

// Unload drops the model, and returns how many bytes that freed.
func (w *Worker) Unload(ctx context.Context) (int64, error) {
	done, err := call[unloadDone](ctx, w, "unload", noParams{}, nil, nil)
	if err != nil {
		return 0, err
	}
	return done.FreedBytes, nil
}

// Info returns the loaded model. Without one it fails with [ErrNotLoaded].
func (w *Worker) Info(ctx context.Context) (*Model, error) {
	return call[Model](ctx, w, "info", noParams{}, nil, nil)
}

// Chat answers a conversation. Ranging over the events sends the request; they end with a [*Result] or an error.
//
// To break out of the loop, or to end the context, cancels the request. The worker and its other requests go on.
func (w *Worker) Chat(ctx context.Context, params ChatParams, options ...RequestOption) iter.Seq2[Event, error] {
	return w.answer(ctx, "chat", params, options)
}

// Generate continues a prompt as it stands, without a chat template. It works like [Worker.Chat].
func (w *Worker) Generate(ctx context.Context, params GenerateParams, options ...RequestOption) iter.Seq2[Event, error] {
	return w.answer(ctx, "generate", params, options)
}

// Complete answers a conversation, and returns the whole answer.
func (w *Worker) Complete(ctx context.Context, params ChatParams, options ...RequestOption) (*Response, error) {
	return Collect(w.Chat(ctx, params, options...))
}

// Tokens are those of a prompt.
type Tokens struct {
	IDs   []int64
	Text  string // The prompt as the model receives it, the template's markers included.
	Count int64
}

// Tokenize returns the tokens of a prompt or of a conversation.
func (w *Worker) Tokenize(ctx context.Context, params TokenizeParams, options ...RequestOption) (*Tokens, error) {
	var tokens Tokens
	var text strings.Builder
	done, err := call[tokenizeDone](ctx, w, "tokenize", params, options, func(event any) error {
		if token, ok := event.(*Token); ok {
			tokens.IDs = append(tokens.IDs, token.TokenIDs...)
			text.WriteString(token.Token)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	tokens.Text, tokens.Count = text.String(), done.Count
	return &tokens, nil
}

// ClearCache drops all cached prompts, and returns how many bytes that freed.
func (w *Worker) ClearCache(ctx context.Context) (int64, error) {
	done, err := call[cacheDone](ctx, w, "cache", cacheParams{Action: "clear"}, nil, nil)
	if err != nil {
		return 0, err
	}
	return done.FreedBytes, nil
}

// Ping returns what the worker does. The reply comes at once, even during a long computation.
func (w *Worker) Ping(ctx context.Context) (*PingReply, error) {
	return call[PingReply](ctx, w, "ping", noParams{}, nil, nil)
}

// Stats returns the worker's counters.
func (w *Worker) Stats(ctx context.Context) (*Stats, error) {
	return call[Stats](ctx, w, "stats", noParams{}, nil, nil)
}
