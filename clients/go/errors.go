package lmwire

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lmwire/lmwire/clients/go/internal/process"
)

// A Code is the reason why a request failed. Codes are errors, for errors.Is:
//
//	if errors.Is(err, lmwire.ErrBusy) { … }
//
// A later version of the protocol may add codes. [RequestError.Retryable] decides about those.
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes of PROTOCOL.md.
const (
	ErrParse               Code = "parse_error"
	ErrLineTooLong         Code = "line_too_long"
	ErrInvalidRequest      Code = "invalid_request"
	ErrUnknownCommand      Code = "unknown_command"
	ErrDuplicateID         Code = "duplicate_id"
	ErrUnsupportedProtocol Code = "unsupported_protocol"
	ErrBusy                Code = "busy"
	ErrDraining            Code = "draining"
	ErrCancelled           Code = "cancelled"
	ErrNotLoaded           Code = "not_loaded"
	ErrModelNotFound       Code = "model_not_found"
	ErrBadModel            Code = "bad_model"
	ErrUnsupported         Code = "unsupported"
	ErrContextOverflow     Code = "context_overflow"
	ErrOutOfMemory         Code = "out_of_memory"
	ErrEngine              Code = "engine_error"
	ErrInternal            Code = "internal"

	// ErrWorkerLost is the code of [LostError], which no worker sends.
	ErrWorkerLost Code = "worker_lost"
)

// Errors of this package, for errors.Is.
var (
	// ErrWorkerNotFound is part of a [StartError]: this machine has no worker.
	ErrWorkerNotFound = errors.New("no worker found")
	// ErrHung is the reason of a [LostError]: the worker made no progress, and a [Supervisor] ended it.
	ErrHung = errors.New("the worker made no progress while requests waited for it, and was ended")
	// ErrSlowConsumer ends a request whose events were not read, so that more of them waited than [WithQueueLimit]
	// allows. The request was cancelled.
	ErrSlowConsumer = errors.New("too many events of the request wait to be read; it was cancelled")
)

// A RequestError reports that the worker refused a request, or failed on it. The worker still serves other requests.
type RequestError struct {
	Message   string  `json:"error"`              // A sentence for people.
	Code      Code    `json:"code"`               // Also for errors.Is.
	Retryable bool    `json:"retryable"`          // Whether the same request can succeed later.
	Field     string  `json:"field,omitzero"`     // The path of the field at fault.
	BadID     string  `json:"bad_id,omitzero"`    // The id in flight that the line used.
	Protocols []int64 `json:"protocols,omitzero"` // With ErrUnsupportedProtocol: the versions that the worker speaks.
	Loaded    *bool   `json:"loaded,omitzero"`    // After a failed load: whether a model is loaded now.
}

// Error returns the code and the sentence.
func (e *RequestError) Error() string {
	return fmt.Sprintf("lmwire: %s: %s", string(e.Code), e.Message)
}

// Is returns whether target is the error's code.
func (e *RequestError) Is(target error) bool { return target == e.Code }

// An UnsupportedError reports that the worker lacks features that a request needs. The request was not sent.
type UnsupportedError struct {
	Worker   string   // The worker's name and version.
	Features []string // The features that it does not list.
}

// Error returns a sentence with the features.
func (e *UnsupportedError) Error() string {
	features := strings.Join(e.Features, ", ")
	return fmt.Sprintf("lmwire: the worker (%s) does not serve %s: leave that out, or install lmwire %s", e.Worker, features, Version)
}

// Is returns whether target is [ErrUnsupported].
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// A LostError reports that the worker is gone, and that a request gets no answer. Text that came before is valid.
type LostError struct {
	Reason error            // ErrHung, a *ProtocolError, or nil if the process ended by itself.
	State  *os.ProcessState // How the process ended. Nil while a hung worker is being ended.
	Stderr []string         // The last lines of stderr.
}

const quotedStderrLines = 10

// Error returns how the worker ended, with the last lines of its stderr.
func (e *LostError) Error() string {
	text := "lmwire: the worker ended: " + e.how()
	if e.Reason == nil && len(e.Stderr) > 0 {
		last := e.Stderr[max(0, len(e.Stderr)-quotedStderrLines):]
		text += "; the end of its stderr:\n    " + strings.Join(last, "\n    ")
	}
	return text
}

func (e *LostError) how() string {
	switch {
	case e.Reason != nil:
		return e.Reason.Error()
	case e.State == nil:
		return "unknown"
	default:
		if signal := process.Signal(e.State); signal != "" {
			return "signal: " + signal
		}
		return fmt.Sprintf("exit code %d", e.State.ExitCode())
	}
}

// Is returns whether target is [ErrWorkerLost].
func (e *LostError) Is(target error) bool { return target == ErrWorkerLost }

// Unwrap returns the reason.
func (e *LostError) Unwrap() error { return e.Reason }

// A ProtocolError reports that the worker wrote a line that breaks the protocol. It was killed, because its output
// cannot be trusted.
type ProtocolError struct {
	Problem error  // What is wrong with the line.
	Line    string // The beginning of the line.
}

// Error returns the problem and the line.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("it broke the protocol: %v: %q", e.Problem, e.Line)
}

// Unwrap returns the problem.
func (e *ProtocolError) Unwrap() error { return e.Problem }

// A StartError reports that a worker did not start.
type StartError struct {
	Command []string // Nil if none was found.
	Err     error
}

// Error returns one sentence.
func (e *StartError) Error() string {
	if e.Command == nil {
		return fmt.Sprintf("lmwire: %v", e.Err)
	}
	return fmt.Sprintf("lmwire: `%s` does not start as a worker: %v", strings.Join(e.Command, " "), e.Err)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }
