package onnx

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loris-ml/loris/onnx/internal/pb"
)

// FormatError says that a file is no model of ONNX that can be read: it is damaged, or contradicts
// itself.
type FormatError struct {
	// Path is the file.
	Path string
	// Reason is what is wrong; of damaged bytes it says where.
	Reason string
	Err    error
}

// Error names the file and the reason.
func (e *FormatError) Error() string { return fmt.Sprintf("onnx: %s: %s", e.Path, e.Reason) }

// Unwrap returns the reason as an error.
func (e *FormatError) Unwrap() error { return e.Err }

// UnsupportedError lists everything in a model that this package cannot do, all at once.
type UnsupportedError struct {
	// Path is the file.
	Path string
	// Items say what, where, and why.
	Items []string
}

// Error lists the items.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("onnx: %s: not supported: %s", e.Path, strings.Join(e.Items, "; "))
}

// NodeError says which node of a model could not be recorded. It wraps the reason: the *ir.OpError
// of an op, the error of what a size depends on, or ErrModel.
type NodeError struct {
	// Graph names the graph or function that has the node, Index its place there from 0.
	Graph string
	Index int
	// Name is the node's name, Op its op; they may be "".
	Name, Op string
	Err      error
}

// Error names the node and the reason.
func (e *NodeError) Error() string {
	name := ""
	if e.Name != "" {
		name = fmt.Sprintf(" %q", e.Name)
	}
	return fmt.Sprintf("onnx: node %d%s (%s) of %s: %v", e.Index, name, e.Op, e.Graph, e.Err)
}

// Unwrap returns the reason.
func (e *NodeError) Unwrap() error { return e.Err }

// ErrModel is what errors wrap that are a model's fault: nodes that contradict the op's definition
// or each other.
var ErrModel = errors.New("the model is wrong")

// fault is what the functions of ops panic with; Call returns it as a *NodeError.
type fault struct{ err error }

func (c *call) fail(format string, args ...any) {
	panic(&fault{err: fmt.Errorf("%w: %s", ErrModel, fmt.Sprintf(format, args...))})
}

// unsupported is fail for what the model may ask for and this package does not do.
func (c *call) unsupported(format string, args ...any) {
	panic(&fault{err: &UnsupportedError{Path: c.run.model.path, Items: []string{c.node.op + ": " + fmt.Sprintf(format, args...)}}})
}

// formatError gives an error of reading a file its place.
func formatError(path string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var at *pb.Error
	if errors.As(err, &at) {
		return &FormatError{Path: path, Reason: at.Error(), Err: err}
	}
	return &FormatError{Path: path, Reason: err.Error(), Err: err}
}
