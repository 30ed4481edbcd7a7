package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/loris-ml/loris/serve/internal/batch"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/model"
	pb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

func badf(format string, args ...any) error {
	return inference.Errorf(inference.InvalidArgument, format, args...)
}

// readConfig reads config.pbtxt of a model's folder; without one the model says enough of
// itself.
func readConfig(dir string) (*pb.ModelConfig, error) {
	path := filepath.Join(dir, "config.pbtxt")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &pb.ModelConfig{}, nil
	}
	if err != nil {
		return nil, err
	}
	c := &pb.ModelConfig{}
	if err := prototext.Unmarshal(text, c); err != nil {
		return nil, badf("%s: %w", path, err)
	}
	return c, nil
}

// parseConfig reads the configuration that a request to load a model brings.
func parseConfig(text string) (*pb.ModelConfig, error) {
	c := &pb.ModelConfig{}
	if err := protojson.Unmarshal([]byte(text), c); err != nil {
		return nil, badf("parameter config: %w", err)
	}
	return c, nil
}

// The fields that have a meaning here, by message. Those with a value that are not
// listed are refused by name.
var fields = map[string][]string{
	"ModelConfig": {"name", "platform", "backend", "version_policy", "max_batch_size", "input", "output", "instance_group",
		"default_model_filename", "dynamic_batching", "model_warmup", "parameters"},
	"ModelInput":           {"name", "data_type", "dims", "format"},
	"ModelOutput":          {"name", "data_type", "dims", "label_filename"},
	"ModelInstanceGroup":   {"name", "kind", "count"},
	"ModelDynamicBatching": {"preferred_batch_size", "max_queue_delay_microseconds", "priority_levels", "default_priority_level", "default_queue_policy", "priority_queue_policy"},
	"ModelQueuePolicy":     {"default_timeout_microseconds", "allow_timeout_override", "max_queue_size"},
}

// The parameters that have a meaning here.
const (
	paramBatching = "batching" // "off": requests are run one by one
	paramModel    = "model"    // which one of several models in a package
	paramThreads  = "threads"  // of one run

	paramBuckets = "padding_buckets" // the rest is that of model.Padding
	paramInputs  = "padding_inputs"
	paramOutputs = "padding_outputs"
	paramMask    = "padding_mask"
	paramValues  = "padding_values"

	paramTokenizer = "tokenizer"       // a file in the model's folder, for generate
	paramEnd       = "end_tokens"      // numbers of tokens after which nothing follows
	paramTokens    = "generate_tokens" // the rest are names of inputs and an output, as
	paramTokenMask = "generate_mask"   // generate.Options has them
	paramLogits    = "generate_logits"
)

var allParams = []string{paramBatching, paramModel, paramThreads, paramBuckets, paramInputs, paramOutputs, paramMask, paramValues,
	paramTokenizer, paramEnd, paramTokens, paramTokenMask, paramLogits}

// checkConfig refuses what this server does not do.
func checkConfig(c *pb.ModelConfig, name string) error {
	if err := checkFields(c.ProtoReflect(), ""); err != nil {
		return err
	}
	if c.Name != "" && c.Name != name {
		return badf("the configuration is of the model %q", c.Name)
	}
	if c.Backend != "" && !slices.Contains([]string{"loris", "pytorch", "torch_aoti"}, c.Backend) {
		return inference.Errorf(inference.Unimplemented, "backend %q: this server has loris alone", c.Backend)
	}
	if c.Platform != "" && !slices.Contains([]string{"pytorch_aotinductor", "loris_program", "torch_aoti"}, c.Platform) {
		return inference.Errorf(inference.Unimplemented, "platform %q: this server runs pytorch_aotinductor and loris_program", c.Platform)
	}
	for _, g := range c.InstanceGroup {
		if g.Kind == pb.ModelInstanceGroup_KIND_GPU {
			return inference.Errorf(inference.Unimplemented, "instance_group: KIND_GPU is not supported")
		}
	}
	for key := range c.Parameters {
		if !slices.Contains(allParams, key) {
			return inference.Errorf(inference.Unimplemented, "parameters: %q is unknown; there are %s", key, strings.Join(allParams, ", "))
		}
	}
	return nil
}

func checkFields(m protoreflect.Message, at string) (err error) {
	known, listed := fields[string(m.Descriptor().Name())]
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		path := at + string(f.Name())
		if listed && !slices.Contains(known, string(f.Name())) {
			err = inference.Errorf(inference.Unimplemented, "%s is not supported", path)
			return false
		}
		switch {
		case f.IsMap():
			if f.MapValue().Message() != nil {
				v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
					err = checkFields(v.Message(), fmt.Sprintf("%s[%v].", path, k))
					return err == nil
				})
			}
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				if err = checkFields(v.List().Get(i).Message(), fmt.Sprintf("%s[%d].", path, i)); err != nil {
					break
				}
			}
		case f.Message() != nil:
			err = checkFields(v.Message(), path+".")
		}
		return err == nil
	})
	return err
}

// options returns what a configuration says of opening the model.
func options(c *pb.ModelConfig) (model.Options, error) {
	o := model.Options{Name: c.Parameters[paramModel].GetStringValue()}
	for _, g := range c.InstanceGroup {
		o.Instances += int(max(g.Count, 1))
	}
	o.MaxInstances = o.Instances
	for _, in := range c.Input {
		o.InputNames = append(o.InputNames, in.Name)
	}
	for _, out := range c.Output {
		o.OutputNames = append(o.OutputNames, out.Name)
	}
	if text := c.Parameters[paramThreads].GetStringValue(); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, badf("parameters: %s is %q: expected a number from 1 on", paramThreads, text)
		}
		o.Threads = n
	}
	var err error
	o.Padding, err = padding(c)
	return o, err
}

// padding reads the parameters about padding; nil without any.
func padding(c *pb.ModelConfig) (*model.Padding, error) {
	text := func(key string) string { return c.Parameters[key].GetStringValue() }
	p := &model.Padding{Mask: text(paramMask)}
	for n := range words(text(paramBuckets)) {
		size, err := strconv.ParseInt(n, 10, 64)
		if err != nil || size < 1 {
			return nil, badf("parameters: %s is %q: expected sizes with commas", paramBuckets, text(paramBuckets))
		}
		p.Buckets = append(p.Buckets, size)
	}
	var err error
	if p.Inputs, err = named(text(paramInputs), ":", strconv.Atoi); err != nil {
		return nil, badf("parameters: %s is %q: expected NAME:DIMENSION with commas", paramInputs, text(paramInputs))
	}
	if p.Outputs, err = named(text(paramOutputs), ":", strconv.Atoi); err != nil {
		return nil, badf("parameters: %s is %q: expected NAME:DIMENSION with commas", paramOutputs, text(paramOutputs))
	}
	float := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	if p.Values, err = named(text(paramValues), "=", float); err != nil {
		return nil, badf("parameters: %s is %q: expected NAME=VALUE with commas", paramValues, text(paramValues))
	}
	if p.Buckets == nil && p.Inputs == nil {
		if p.Outputs != nil || p.Values != nil || p.Mask != "" {
			return nil, badf("parameters: padding needs %s or %s", paramBuckets, paramInputs)
		}
		return nil, nil
	}
	return p, nil
}

// words are the parts of a list with commas.
func words(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range strings.SplitSeq(list, ",") {
			if w = strings.TrimSpace(w); w != "" && !yield(w) {
				return
			}
		}
	}
}

// named reads a list of names with a value each; nil if it is empty.
func named[T any](list, sep string, parse func(string) (T, error)) (map[string]T, error) {
	var all map[string]T
	for w := range words(list) {
		at := strings.LastIndex(w, sep)
		if at < 0 {
			return nil, strconv.ErrSyntax
		}
		v, err := parse(w[at+1:])
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = map[string]T{}
		}
		all[w[:at]] = v
	}
	return all, nil
}

// defaultRows bounds the rows of a run where nobody says anything else.
const defaultRows = 64

// scheduling returns how requests for a model are put together.
func scheduling(c *pb.ModelConfig, m *model.Model) batch.Config {
	d := c.GetDynamicBatching()
	s := batch.Config{
		Slots:        m.Instances(),
		Delay:        time.Duration(d.GetMaxQueueDelayMicroseconds()) * time.Microsecond,
		Levels:       int(d.GetPriorityLevels()),
		DefaultLevel: int(d.GetDefaultPriorityLevel()),
	}
	s.MaxRows = batchRows(c, m)
	for _, p := range d.GetPreferredBatchSize() {
		s.Preferred = append(s.Preferred, int64(p))
	}
	general := policy(d.GetDefaultQueuePolicy())
	for level := range max(s.Levels, 1) {
		p := general
		if own := d.GetPriorityQueuePolicy()[uint64(level+1)]; own != nil {
			p = policy(own)
		}
		s.Policies = append(s.Policies, p)
	}
	return s
}

// batchRows returns how many rows a run has at most; 0 for one request each.
func batchRows(c *pb.ModelConfig, m *model.Model) int64 {
	if m.Rows == 0 || c.Parameters[paramBatching].GetStringValue() == "off" {
		return 0
	}
	rows := int64(defaultRows)
	if c.MaxBatchSize > 0 {
		rows = int64(c.MaxBatchSize)
	}
	if m.Rows > 0 && (rows > m.Rows || m.FixedRows) {
		rows = m.Rows
	}
	return rows
}

func policy(p *pb.ModelQueuePolicy) batch.Policy {
	if p == nil {
		return batch.Policy{Override: true}
	}
	return batch.Policy{
		MaxQueue: int(p.MaxQueueSize), Timeout: time.Duration(p.DefaultTimeoutMicroseconds) * time.Microsecond, Override: p.AllowTimeoutOverride,
	}
}

// completed returns a configuration with what the model says of itself filled in, as
// clients read it.
func completed(c *pb.ModelConfig, name string, m *model.Model) *pb.ModelConfig {
	full := proto.CloneOf(c)
	full.Name, full.Platform, full.Backend = name, m.Platform, "loris"
	if full.VersionPolicy == nil {
		full.VersionPolicy = &pb.ModelVersionPolicy{PolicyChoice: &pb.ModelVersionPolicy_Latest_{Latest: &pb.ModelVersionPolicy_Latest{NumVersions: 1}}}
	}
	full.MaxBatchSize = int32(batchRows(c, m))
	if full.MaxBatchSize > 0 && full.SchedulingChoice == nil {
		full.SchedulingChoice = &pb.ModelConfig_DynamicBatching{DynamicBatching: &pb.ModelDynamicBatching{}}
	}
	if len(full.InstanceGroup) == 0 {
		full.InstanceGroup = []*pb.ModelInstanceGroup{{Name: name, Kind: pb.ModelInstanceGroup_KIND_CPU, Count: int32(m.Instances())}}
	}
	skip := 0
	if full.MaxBatchSize > 0 {
		skip = 1 // the dimension of rows is not among the dims
	}
	labels := map[string]string{}
	for _, o := range c.Output {
		labels[o.Name] = o.LabelFilename
	}
	full.Input, full.Output = nil, nil
	for i := range m.Inputs {
		shape := inputShape(m, i)
		full.Input = append(full.Input, &pb.ModelInput{Name: m.Inputs[i].Name, DataType: dataType(m.Inputs[i].Datatype), Dims: shape[min(skip, len(shape)):]})
	}
	for _, o := range m.Outputs {
		full.Output = append(full.Output, &pb.ModelOutput{Name: o.Name, DataType: dataType(o.Datatype), Dims: o.Shape[min(skip, len(o.Shape)):], LabelFilename: labels[o.Name]})
	}
	return full
}

// inputShape returns the sizes of an input, -1 for those that vary.
func inputShape(m *model.Model, i int) []int64 {
	shape := make([]int64, 0, len(m.Inputs[i].Dims))
	for j, d := range m.Inputs[i].Dims {
		n := d.Min
		if m.Varies(i, j) {
			n = -1
		}
		shape = append(shape, n)
	}
	return shape
}

func dataType(d inference.Datatype) pb.DataType {
	if d == inference.Bytes {
		return pb.DataType_TYPE_STRING
	}
	return pb.DataType(pb.DataType_value["TYPE_"+string(d)])
}

// checkTensors compares what a configuration says of inputs and outputs with the model.
func checkTensors(c *pb.ModelConfig, m *model.Model) error {
	for _, in := range c.Input {
		for i := range m.Inputs {
			have := &m.Inputs[i]
			if have.Name != in.Name || !have.Known {
				continue
			}
			if in.DataType != pb.DataType_TYPE_INVALID && in.DataType != dataType(have.Datatype) {
				return badf("input %q: the configuration says %v, the model takes %s", in.Name, in.DataType, have.Datatype)
			}
			if err := checkDims("input", in.Name, in.Dims, inputShape(m, i), c.MaxBatchSize > 0); err != nil {
				return err
			}
		}
	}
	for _, out := range c.Output {
		for _, have := range m.Outputs {
			if have.Name != out.Name || have.Datatype == "" {
				continue
			}
			if out.DataType != pb.DataType_TYPE_INVALID && out.DataType != dataType(have.Datatype) {
				return badf("output %q: the configuration says %v, the model returns %s", out.Name, out.DataType, have.Datatype)
			}
			if err := checkDims("output", out.Name, out.Dims, have.Shape, c.MaxBatchSize > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDims(what, name string, dims, shape []int64, batched bool) error {
	if len(dims) == 0 {
		return nil
	}
	want := shape
	if batched && len(shape) > 0 {
		want = shape[1:]
	}
	fits := len(dims) == len(want)
	for i := 0; fits && i < len(dims); i++ {
		fits = dims[i] == want[i] || dims[i] == -1 || want[i] == -1
	}
	if !fits {
		return badf("%s %q: the configuration says dims %v, the model has %v", what, name, dims, want)
	}
	return nil
}
