package aoti

import (
	"context"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/collective"
)

// Option changes how a package is loaded.
type Option func(*options)

// options are the settings of Load.
type options struct {
	// device is where to run, such as "cpu" or "cuda:1"; empty means where the
	// model was compiled for.
	device string
	// model is the name of the model in the package; empty means the only one.
	model string
	// instances and maxInstances size the pool; maxInstances is as instances if 0.
	instances, maxInstances int
	// unchecked leaves out the check of inputs before a run.
	unchecked bool
	// libraryChecks also switches on the checks that were compiled into the
	// library. They are always on for a library without source, of which nothing
	// else is known.
	libraryChecks bool
	// unpackedWeights keeps one copy of the weights only.
	unpackedWeights bool
	// noWeights leaves the weights of the package alone, for a caller who brings
	// others.
	noWeights bool
	// unverified maps weights where they lie.
	unverified bool
	// libtorch is the path of a real libtorch_cpu.so to run on.
	libtorch string
	// threads bounds the threads of parallel code; 0 leaves the bound as it is.
	threads int
	// tempDir is for systems that have no files in memory.
	tempDir string
	// groups are those that the model's collectives are of, by PyTorch's names.
	groups map[string]Group
	// step is what a run does with its instance; nil runs it.
	step Step
}

// Step runs an instance of a model. It is called with an instance that nobody
// else uses meanwhile, and usually calls m.Run.
type Step func(ctx context.Context, m Model, inputs []Buffer, donated []bool) ([]Buffer, error)

// Buffer is a tensor of a run: an alias of backend.Buffer.
type Buffer = backend.Buffer

// Device says where to run, such as "cpu". The default is the device that the
// model was compiled for.
func Device(device string) Option { return func(o *options) { o.device = device } }

// ModelName chooses one of several models in a package.
func ModelName(name string) Option { return func(o *options) { o.model = name } }

// Instances makes n instances, so that as many runs go on at once; the default
// is one.
func Instances(n int) Option { return func(o *options) { o.instances = n } }

// MaxInstances lets the pool grow to n when all instances are busy.
func MaxInstances(n int) Option { return func(o *options) { o.maxInstances = n } }

// Unchecked leaves out the check of inputs. A wrong input is undefined behaviour
// then.
func Unchecked() Option { return func(o *options) { o.unchecked = true } }

// LibraryChecks also switches on the checks of inputs that were compiled into
// the library. They refuse a size of 1 where the model was compiled for a range
// from 1, because PyTorch takes such a range to begin at 2.
func LibraryChecks() Option { return func(o *options) { o.libraryChecks = true } }

// UnpackedWeights saves memory: otherwise the weights of linear layers,
// convolutions and recurrent layers are kept a second time from the first run
// on, in the order in which the processor's inner loops read them, and runs take
// up to a third less time for that.
func UnpackedWeights() Option { return func(o *options) { o.unpackedWeights = true } }

// WithoutWeights leaves the weights that lie beside the library alone, for a
// caller who brings his own by Update before the first run.
func WithoutWeights() Option { return func(o *options) { o.noWeights = true } }

// WithoutVerify maps weights that lie beside the library uncompressed where they are, and
// compares no checksum. Otherwise Load reads and copies them, which takes time and memory
// for each process; mapped ones are read when they are first used, and processes share
// them. The package must be known to be whole, and nobody may write to its file while
// the model is loaded: other bytes there are other weights, and a file that is cut short
// ends the process.
func WithoutVerify() Option { return func(o *options) { o.unverified = true } }

// WithLibtorch runs on a real libtorch_cpu.so instead of this host, which must
// be of the PyTorch that compiled the model. It stays loaded for good.
func WithLibtorch(path string) Option { return func(o *options) { o.libtorch = path } }

// Threads bounds how many threads parallel code of all models uses, also that of
// Loris's own kernels.
func Threads(n int) Option { return func(o *options) { o.threads = n } }

// TempDir is where the private copy of a library is made on systems that have no
// files in memory. It is removed there before it is used.
func TempDir(dir string) Option { return func(o *options) { o.tempDir = dir } }

// Group is a group of processes that compute together, such as a *dist.Group.
type Group = collective.Group

// Groups gives a model for the CPU the groups of processes that it computes with, by PyTorch's names
// for them: "0" is that of all processes. All ranks load the model and run it the same number of
// times; each run compares each collective with those of the other ranks as it begins. A run that
// fails on one rank ends those of the others, with errors that are those of package dist; waits end
// with the context of the run and the limit of the group. Such a model has one instance. Without the
// option a model with collectives is not loaded.
func Groups(groups map[string]Group) Option { return func(o *options) { o.groups = groups } }

// RunStep makes step run the instances.
func RunStep(step Step) Option { return func(o *options) { o.step = step } }
