package lmwire

import (
	"log/slog"
	"time"
)

// An Option of [Start] changes how a worker is found, started or ended.
type Option func(*config)

type config struct {
	command      []string
	args         []string
	uvx          bool
	hostWatch    *bool
	startTimeout time.Duration
	shutdown     ShutdownTimeouts
	onStderr     func(string)
	logger       *slog.Logger
	required     []string
	queueLimit   int
}

// ShutdownTimeouts has the longest time of each step of [Worker.Close]. The next step is more forceful.
type ShutdownTimeouts struct {
	Quit time.Duration // After the command `quit`.
	EOF  time.Duration // After the close of stdin.
	Term time.Duration // After SIGTERM. SIGKILL follows.
}

const (
	startTimeout      = 30 * time.Second
	downloadTimeout   = 10 * time.Minute // uvx fetches the worker's packages at its first start
	killTimeout       = 5 * time.Second
	defaultQueueLimit = 64 << 20
)

func newConfig(options []Option) config {
	c := config{
		shutdown:   ShutdownTimeouts{Quit: 5 * time.Second, EOF: 2 * time.Second, Term: 3 * time.Second},
		logger:     slog.New(slog.DiscardHandler),
		queueLimit: defaultQueueLimit,
	}
	for _, option := range options {
		option(&c)
	}
	return c
}

// WithCommand starts this command, such as "ssh", "-T", "host", "lmwire", "worker". Without it, [Start] looks for a worker.
func WithCommand(program string, args ...string) Option {
	return func(c *config) { c.command = append([]string{program}, args...) }
}

// WithArgs adds options of `lmwire worker`, such as "--memory-limit", "8000000000".
func WithArgs(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}

// WithUvx lets [Start] run the package lmwire of the package index with uvx, if it finds no other worker. Whoever owns that
// name there runs code with your rights. lmwire is not published yet, so nobody of this project owns it.
func WithUvx() Option {
	return func(c *config) { c.uvx = true }
}

// WithHostWatch sets whether the worker ends when this process ends, even while another process holds its pipes open.
// The worker must then be a descendant of this process, so the default is false for a whole command.
func WithHostWatch(watch bool) Option {
	return func(c *config) { c.hostWatch = &watch }
}

// WithStartTimeout sets the longest time until the reply to `hello`. The default is 30 s, or 10 minutes with [WithUvx].
func WithStartTimeout(timeout time.Duration) Option {
	return func(c *config) { c.startTimeout = timeout }
}

// WithShutdownTimeouts sets the longest time of each step of [Worker.Close].
func WithShutdownTimeouts(timeouts ShutdownTimeouts) Option {
	return func(c *config) { c.shutdown = timeouts }
}

// WithStderr calls a function with each line of the worker's stderr, on one goroutine. It must not wait for the worker.
func WithStderr(onLine func(line string)) Option {
	return func(c *config) { c.onStderr = onLine }
}

// WithLogger logs errors of the worker that belong to no request.
func WithLogger(logger *slog.Logger) Option {
	return func(c *config) { c.logger = logger }
}

// WithFeatures makes [Start] fail if the worker does not list these features, such as "chat.tools".
func WithFeatures(features ...string) Option {
	return func(c *config) { c.required = append(c.required, features...) }
}

// WithQueueLimit sets how many bytes of a request's events may wait to be read. A request above it is cancelled, and
// fails with [ErrSlowConsumer]. The default is 64 MiB, a thousand times a long answer.
func WithQueueLimit(bytes int) Option {
	return func(c *config) { c.queueLimit = bytes }
}

// A RequestOption changes how a request is made.
type RequestOption func(*requestConfig)

type requestConfig struct {
	onProgress func(Progress)
	stop       <-chan struct{}
}

// WithProgress calls a function with the progress of a request, on the goroutine that waits for it.
func WithProgress(onProgress func(Progress)) RequestOption {
	return func(c *requestConfig) { c.onProgress = onProgress }
}

// WithStop asks the worker to end the request when the channel is closed. Unlike the end of the context, that is not an
// error: the events so far follow, and a [Result] with [FinishCancelled].
func WithStop(stop <-chan struct{}) RequestOption {
	return func(c *requestConfig) { c.stop = stop }
}
