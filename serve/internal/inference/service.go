package inference

import "context"

// Service is what the protocols call. Its methods are safe for concurrent use, and
// their errors are *Errors. A version is "" for the one that the server chooses.
type Service interface {
	// Live reports whether the process works; it does until it ends.
	Live() bool
	// Ready reports whether every model that was selected is loaded and warm, and
	// the server is not about to stop.
	Ready() bool
	// Metadata says what the server is.
	Metadata() ServerMetadata
	// ModelReady reports whether a version answers requests; NotFound if there is
	// no such model.
	ModelReady(name, version string) (bool, error)
	// ModelMetadata describes a model.
	ModelMetadata(name, version string) (*ModelMetadata, error)
	// ModelConfig returns the configuration, as JSON with Triton's field names
	// (inference.ModelConfig).
	ModelConfig(name, version string) ([]byte, error)
	// Statistics counts what a version did; all versions for "", all models if name
	// is empty, too.
	Statistics(name, version string) ([]ModelStatistics, error)
	// Infer computes the outputs. The request is its caller's again when it returns. It waits in the model's queue as long as ctx allows.
	Infer(ctx context.Context, r *Request) (*Response, error)
	// Index lists the models of the repository; with ready only versions that
	// answer requests.
	Index(ready bool) ([]IndexEntry, error)
	// Load loads a model, or loads it anew; requests go to the old versions until
	// the new ones are ready. It waits for that, but goes on if ctx ends.
	// Parameters are those of Triton: "config", a JSON string.
	Load(ctx context.Context, name string, parameters Parameters) error
	// Unload stops a model; requests that have begun finish.
	Unload(ctx context.Context, name string) error
	// Settings returns the settings of the log or the traces, and Set changes some
	// of them first.
	Settings(kind SettingsKind, model string) (map[string]any, error)
	Set(kind SettingsKind, model string, values map[string]any) (map[string]any, error)
}

// SettingsKind says which settings are meant.
type SettingsKind uint8

// The kinds of settings.
const (
	LogSettings SettingsKind = iota
	TraceSettings
)

// Scope names a part of the server's interface, for the rules of who may call it. The
// words are those of Triton's restricted APIs where it has one.
type Scope string

// The scopes.
const (
	ScopeHealth       Scope = "health"
	ScopeMetadata     Scope = "metadata" // the index of the repository, too
	ScopeInference    Scope = "inference"
	ScopeConfig       Scope = "model-config"
	ScopeRepository   Scope = "model-repository" // load and unload
	ScopeStatistics   Scope = "statistics"
	ScopeLogging      Scope = "logging"
	ScopeTrace        Scope = "trace"
	ScopeMetrics      Scope = "metrics"
	ScopeWeights      Scope = "weights"
	ScopeProfiling    Scope = "profiling"
	ScopeSharedMemory Scope = "shared-memory"
)
