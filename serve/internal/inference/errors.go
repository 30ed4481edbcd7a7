package inference

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind says what sort of failure an Error is; each protocol has a status for it.
type Kind uint8

// The kinds, by what a client can do about them.
const (
	Internal Kind = iota
	InvalidArgument
	NotFound
	AlreadyExists
	Conflict
	Unimplemented
	Unauthenticated
	PermissionDenied
	ResourceExhausted // the queue is full: try again after RetryAfter
	Unavailable       // not ready, or going away
	DeadlineExceeded
	Canceled
	TooLarge // the request is larger than the server takes
)

// Error is a failure that is told to the client.
type Error struct {
	Kind Kind
	Msg  string
	// RetryAfter says when to try again, for ResourceExhausted and Unavailable; 0 does not.
	RetryAfter time.Duration
	err        error
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.err }

// Errorf returns an Error; an error among the arguments of %w is its cause.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Msg: err.Error(), err: errors.Unwrap(err)}
}

// AsError returns err as an Error: itself if it is one, the end of a context as
// Canceled or DeadlineExceeded, and anything else as Internal.
func AsError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return &Error{Kind: Canceled, Msg: err.Error(), err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: DeadlineExceeded, Msg: err.Error(), err: err}
	}
	return &Error{Kind: Internal, Msg: err.Error(), err: err}
}

var kindNames = [...]string{
	"internal", "invalid_argument", "not_found", "already_exists", "conflict", "unimplemented", "unauthenticated", "permission_denied",
	"resource_exhausted", "unavailable", "deadline_exceeded", "canceled", "too_large",
}

// String returns the kind as a word of metrics.
func (k Kind) String() string { return kindNames[k] }
