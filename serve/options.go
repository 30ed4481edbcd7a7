// Package serve answers requests for compiled models over the network: AOTInductor
// packages and lazy programs, by the Open Inference Protocol v2 with Triton's
// extensions, as REST and gRPC on one port.
//
// A Server is an http.Handler; Run listens, serves and drains as the command
// `loris serve` does.
package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mode says when models are loaded and unloaded.
type Mode string

// The modes, by Triton's names.
const (
	// ModeNone loads all models at the start, and nothing afterwards but by request.
	ModeNone Mode = "none"
	// ModeExplicit loads those that are named, and others by request.
	ModeExplicit Mode = "explicit"
	// ModePoll loads all, and follows what changes on disk.
	ModePoll Mode = "poll"
)

// Options configure a Server. The zero value of a field is its default, where it has one.
type Options struct {
	// Files are packages (.pt2, .so) and programs (.lir) to serve, each as version 1 of
	// a model of the file's name, or "NAME=FILE".
	Files []string
	// Weights are safetensors files whose tensors replace those of Files, in their order;
	// "" and missing ones for none.
	Weights []string
	// Models is a folder in Triton's layout: NAME/[config.pbtxt]/VERSION/FILE.
	Models string
	// ModelName is for a folder that is a model by itself, as KServe lays it out: Models
	// has the versions of this model, or its file. A folder of models is served as such.
	ModelName string
	// Mode is ModeNone by default; Load are the models of ModeExplicit.
	Mode Mode
	Load []string
	// PollInterval is how often ModePoll looks, 15 seconds by default.
	PollInterval time.Duration
	// KeepGoing serves what could be loaded where something could not. The server is
	// not ready then.
	KeepGoing bool
	// MemoryBudget bounds the bytes that loaded models hold: the sizes of their files and of the sets of
	// weights that they got since. The models that were not used for the longest time are unloaded to
	// keep within it; the next request for one loads it again, and waits LoadWait for that at most, 30
	// seconds by default. Models with a state, and those whose weights were updated, stay. 0 is no
	// bound.
	MemoryBudget int64
	LoadWait     time.Duration

	// AllowDigests are the sha256 sums that packages may have; nil allows all.
	AllowDigests []string

	// AllowWeightUpdate lets those with the scope "weights" replace the weights of loaded
	// models; every answer then says which set of weights computed it. WeightsDir is the
	// folder of files that they may name for it; empty has them send the file.
	AllowWeightUpdate bool
	WeightsDir        string

	// AllowClientSharedMemory lets those with the scope "shared-memory" register memory of
	// the machine, by the names under which programs share it, for tensors of requests.
	// Linux only.
	AllowClientSharedMemory bool

	// Allow are scopes that are open to everybody, besides those that are by default.
	Allow []string
	// TokenFile has the bearer tokens and their scopes.
	TokenFile string
	// OIDC takes tokens of an issuer of OpenID Connect, too.
	OIDC OIDC
	// CertFile and KeyFile are for TLS; they are read again when they change. CAFile has
	// the authorities of client certificates, which are then required.
	CertFile, KeyFile, CAFile string

	// HTTPAddress is where REST, gRPC and metrics are, ":8080" by default; GRPCAddress
	// another place for gRPC alone, empty for none.
	HTTPAddress, GRPCAddress string
	// AdminAddress is where profiles are, for who may use the scope "profiling"; empty for
	// nowhere.
	AdminAddress string
	// MaxBody bounds a request for inference, 64 MiB by default.
	MaxBody int64
	// DrainTimeout is how long Run waits for requests in flight when it is to stop, 30
	// seconds by default.
	DrainTimeout time.Duration
	// JSONNaN reads and writes NaN and infinities in JSON, as Python does.
	JSONNaN bool
	// NoPage leaves out the page for people at /.
	NoPage bool
	// TritonMetrics adds metrics under Triton's names.
	TritonMetrics bool

	// TraceEndpoint is the URL of a collector of OpenTelemetry that gets spans of requests
	// for inference by OTLP over HTTP; empty traces nothing. TraceRate traces one of so
	// many requests, besides those that their clients trace; all of them for 0.
	TraceEndpoint string
	TraceRate     int64

	// Log gets what happens; nil for nothing. Level is what its verbosity can be set by
	// over the network, nil for not. AccessLog writes a line for each request.
	Log       *slog.Logger
	Level     *slog.LevelVar
	AccessLog bool
	// Version is told to clients.
	Version string
}

// OIDC says whose tokens are taken.
type OIDC struct {
	// Issuer is a URL; its keys are fetched when the first token comes, and kept.
	Issuer string
	// Audience must be among the audiences of a token.
	Audience string
	// Claim names what has the scopes, as words or a list: "scope" by default. Words
	// that begin with "loris:" count, such as "loris:inference" and "loris:all".
	Claim string
}

// check fills in defaults and refuses what contradicts itself.
func (o *Options) check() error {
	if o.Mode == "" {
		o.Mode = ModeNone
	}
	if o.PollInterval == 0 {
		o.PollInterval = 15 * time.Second
	}
	if o.HTTPAddress == "" {
		o.HTTPAddress = ":8080"
	}
	if o.MaxBody == 0 {
		o.MaxBody = 64 << 20
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 30 * time.Second
	}
	if o.LoadWait == 0 {
		o.LoadWait = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Mode != ModeNone && o.Mode != ModeExplicit && o.Mode != ModePoll:
		return fmt.Errorf("mode %q: there are %s, %s and %s", o.Mode, ModeNone, ModeExplicit, ModePoll)
	case o.MemoryBudget < 0 || o.LoadWait < 0:
		return fmt.Errorf("a memory budget of %d bytes and a wait of %v for a load: expected none below 0", o.MemoryBudget, o.LoadWait)
	case len(o.Files) == 0 && o.Models == "":
		return errors.New("there are neither files nor a folder of models to serve")
	case o.ModelName != "" && o.Models == "":
		return errors.New("a name is given for the model in a folder, but no folder")
	case o.WeightsDir != "" && !o.AllowWeightUpdate:
		return errors.New("there is a folder to update weights from, but updates are not allowed")
	case len(o.Load) > 0 && o.Mode != ModeExplicit:
		return fmt.Errorf("models are named to be loaded, which is for mode %s", ModeExplicit)
	case len(o.Weights) > len(o.Files):
		return fmt.Errorf("there are %d files of weights for %d models", len(o.Weights), len(o.Files))
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("TLS needs both a certificate and its key")
	case o.OIDC != OIDC{} && o.OIDC.Issuer == "":
		return errors.New("an audience or a claim is given for tokens, but no issuer of them")
	case o.TraceRate != 0 && o.TraceEndpoint == "":
		return errors.New("a rate of traces is given, but no endpoint to send them to")
	case o.CAFile != "" && o.CertFile == "":
		return errors.New("client certificates need TLS: a certificate and its key")
	}
	return nil
}

// files returns the models given by themselves, and their weights, by name.
func (o *Options) files() (files, weights map[string]string, err error) {
	files, weights = map[string]string{}, map[string]string{}
	for i, file := range o.Files {
		name, path, named := strings.Cut(file, "=")
		if !named {
			path = file
			name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		}
		if name == "" || files[name] != "" {
			return nil, nil, fmt.Errorf("two models, or one without a name: %q; write NAME=FILE", file)
		}
		files[name] = path
		if i < len(o.Weights) {
			weights[name] = o.Weights[i]
		}
	}
	return files, weights, nil
}

// singleModel reports whether a folder is one model: it has a model's file, which is
// returned, or folders of versions.
func singleModel(dir string) (file string, single bool) {
	for _, name := range []string{"model.pt2", "model.lir", "model.so"} {
		if path := filepath.Join(dir, name); isThere(path) {
			return path, true
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", false // the repository says what is wrong
	}
	return "", slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		n, err := strconv.ParseUint(e.Name(), 10, 63)
		return err == nil && n > 0
	})
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
