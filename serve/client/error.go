package client

import (
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"
)

// Error is a refusal by the server.
type Error struct {
	// Status is the HTTP status; of gRPC the one that REST has for the code.
	Status int
	// Message is the server's.
	Message string
	// RetryAfter is when the server asks to be tried again; 0 if it does not say.
	RetryAfter time.Duration
}

// Error returns the server's message and the status.
func (e *Error) Error() string { return e.Message + " (status " + strconv.Itoa(e.Status) + ")" }

// statuses are those that REST has for the codes of gRPC.
var statuses = map[connect.Code]int{
	connect.CodeCanceled:           499,
	connect.CodeInvalidArgument:    http.StatusBadRequest,
	connect.CodeDeadlineExceeded:   http.StatusGatewayTimeout,
	connect.CodeNotFound:           http.StatusNotFound,
	connect.CodeAlreadyExists:      http.StatusConflict,
	connect.CodePermissionDenied:   http.StatusForbidden,
	connect.CodeResourceExhausted:  http.StatusTooManyRequests,
	connect.CodeFailedPrecondition: http.StatusBadRequest,
	connect.CodeAborted:            http.StatusConflict,
	connect.CodeOutOfRange:         http.StatusBadRequest,
	connect.CodeUnimplemented:      http.StatusNotImplemented,
	connect.CodeUnavailable:        http.StatusServiceUnavailable,
	connect.CodeUnauthenticated:    http.StatusUnauthorized,
}
