package inference

import "time"

// Description says what a version of a model is.
type Description struct {
	Files []FileDescription `json:"files"`
	// Changed says that the files are not those any more that were loaded, so that what follows is of
	// others.
	Changed bool `json:"changed,omitempty"`
	Package
	Inputs  []TensorDescription `json:"inputs"`
	Outputs []TensorDescription `json:"outputs"`
	// Rows is how many rows a run takes, in words; empty for a model whose requests run alone.
	Rows string `json:"rows,omitempty"`
	// Instances is how many runs may go on at once; 0 for a model that is not loaded.
	Instances int    `json:"instances,omitempty"`
	Note      string `json:"note,omitempty"`
}

// FileDescription is a file of a model. SHA256 is in hexadecimal.
type FileDescription struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// TensorDescription is an input or an output; Shape names sizes that vary, with their bounds.
type TensorDescription struct {
	Name     string   `json:"name"`
	Datatype Datatype `json:"datatype"`
	Shape    string   `json:"shape"`
}

// Package is what the file of a model says of itself.
type Package struct {
	Kind string `json:"kind"`
	// Target is the device, the system and the machine that it was compiled for, and ISA the
	// instruction sets that it needs.
	Target string   `json:"target,omitempty"`
	ISA    []string `json:"isa,omitempty"`
	// Generation is the version of PyTorch that compiled it.
	Generation string `json:"generation,omitempty"`
	// Ops is how many instructions a lazy program has.
	Ops       int                   `json:"ops,omitempty"`
	Constants []ConstantDescription `json:"constants"`
	// Missing is what this host lacks to run it, and Refused why it cannot at all.
	Missing []string `json:"missing,omitempty"`
	Refused string   `json:"refused,omitempty"`
}

// ConstantDescription is a weight, a buffer, or what is folded of such.
type ConstantDescription struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
	Bytes    int64   `json:"bytes"`
	Folded   bool    `json:"folded,omitempty"`
}

// Failure is a request that failed, or several one after the other for one reason.
type Failure struct {
	At      time.Time `json:"at"` // of the last
	Kind    string    `json:"kind"`
	Message string    `json:"message"`
	Count   int       `json:"count"`
}
