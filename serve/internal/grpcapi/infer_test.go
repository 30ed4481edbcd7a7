package grpcapi

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

type input = inferencepb.ModelInferRequest_InferInputTensor

func withContents(datatype string, c *inferencepb.InferTensorContents) *input {
	return &input{Name: "x", Datatype: datatype, Shape: []int64{2}, Contents: c}
}

func bytesOf(v any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

// Elements in the field of their datatype arrive exactly.
func TestContents(t *testing.T) {
	f := &fake{}
	f.infer = f.echo
	conn, _ := listen(t, f, Options{})
	for _, tt := range []struct {
		in   *input
		want []byte
	}{
		{withContents("BOOL", &inferencepb.InferTensorContents{BoolContents: []bool{true, false}}), []byte{1, 0}},
		{withContents("INT8", &inferencepb.InferTensorContents{IntContents: []int32{-128, 127}}), bytesOf([]int8{-128, 127})},
		{withContents("INT16", &inferencepb.InferTensorContents{IntContents: []int32{-32768, 32767}}), bytesOf([]int16{-32768, 32767})},
		{withContents("INT32", &inferencepb.InferTensorContents{IntContents: []int32{math.MinInt32, math.MaxInt32}}), bytesOf([]int32{math.MinInt32, math.MaxInt32})},
		{withContents("INT64", &inferencepb.InferTensorContents{Int64Contents: []int64{math.MinInt64, 1<<53 + 1}}), bytesOf([]int64{math.MinInt64, 1<<53 + 1})},
		{withContents("UINT8", &inferencepb.InferTensorContents{UintContents: []uint32{0, 255}}), []byte{0, 255}},
		{withContents("UINT16", &inferencepb.InferTensorContents{UintContents: []uint32{1, 65535}}), bytesOf([]uint16{1, 65535})},
		{withContents("UINT32", &inferencepb.InferTensorContents{UintContents: []uint32{1, math.MaxUint32}}), bytesOf([]uint32{1, math.MaxUint32})},
		{withContents("UINT64", &inferencepb.InferTensorContents{Uint64Contents: []uint64{1, math.MaxUint64}}), bytesOf([]uint64{1, math.MaxUint64})},
		{withContents("FP32", &inferencepb.InferTensorContents{Fp32Contents: []float32{0.1, float32(math.Inf(-1))}}), bytesOf([]float32{0.1, float32(math.Inf(-1))})},
		{withContents("FP64", &inferencepb.InferTensorContents{Fp64Contents: []float64{0.1, math.MaxFloat64}}), bytesOf([]float64{0.1, math.MaxFloat64})},
		{withContents("BYTES", &inferencepb.InferTensorContents{BytesContents: [][]byte{[]byte("ab"), {}}}), []byte("\x02\x00\x00\x00ab\x00\x00\x00\x00")},
		{&input{Name: "x", Datatype: "FP16", Shape: []int64{0}}, nil},
	} {
		out := &inferencepb.ModelInferResponse{}
		if err := invoke(t, conn, "ModelInfer", &inferencepb.ModelInferRequest{Inputs: []*input{tt.in}}, out); err != nil {
			t.Errorf("%s: %v", tt.in.Datatype, err)
			continue
		}
		if got := out.RawOutputContents[0]; !bytes.Equal(got, tt.want) || out.Outputs[0].Contents != nil {
			t.Errorf("%s: %v, want %v", tt.in.Datatype, got, tt.want)
		}
	}
}

func TestRequestsThatDoNotFit(t *testing.T) {
	f := &fake{}
	f.infer = f.echo
	conn, _ := listen(t, f, Options{})
	raw := [][]byte{{1, 2}}
	shared := map[string]*inferencepb.InferParameter{"shared_memory_region": {ParameterChoice: &inferencepb.InferParameter_StringParam{StringParam: "r"}}}
	noRegion := map[string]*inferencepb.InferParameter{"shared_memory_region": {}} // a parameter without a value is none
	for _, tt := range []struct {
		in   *inferencepb.ModelInferRequest
		code codes.Code
		want string
	}{
		{&inferencepb.ModelInferRequest{Inputs: []*input{{Name: "x"}, {Name: "y"}}, RawInputContents: raw}, codes.InvalidArgument, "1 entries for 2 inputs"},
		{&inferencepb.ModelInferRequest{RawInputContents: raw}, codes.InvalidArgument, "1 entries for 0 inputs"},
		{&inferencepb.ModelInferRequest{Inputs: []*input{withContents("UINT8", &inferencepb.InferTensorContents{})}, RawInputContents: raw}, codes.InvalidArgument, `input "x" has contents beside`},
		{&inferencepb.ModelInferRequest{Inputs: []*input{withContents("FP32", &inferencepb.InferTensorContents{IntContents: []int32{1}})}}, codes.InvalidArgument, "fp32_contents, but int_contents has 1"},
		{&inferencepb.ModelInferRequest{Inputs: []*input{withContents("FP16", &inferencepb.InferTensorContents{Fp32Contents: []float32{1}})}}, codes.InvalidArgument, "raw_input_contents"},
		{&inferencepb.ModelInferRequest{Inputs: []*input{withContents("INT8", &inferencepb.InferTensorContents{IntContents: []int32{0, 128}})}}, codes.InvalidArgument, "element 1 does not fit INT8"},
		{&inferencepb.ModelInferRequest{Inputs: []*input{withContents("UINT16", &inferencepb.InferTensorContents{UintContents: []uint32{1 << 16}})}}, codes.InvalidArgument, "element 0 does not fit UINT16"},
		{&inferencepb.ModelInferRequest{Inputs: []*input{{Name: "x", Parameters: shared, Contents: &inferencepb.InferTensorContents{}}}}, codes.InvalidArgument, `input "x" is in shared memory, and has contents`},
		{&inferencepb.ModelInferRequest{Inputs: []*input{{Name: "x", Parameters: noRegion}, {Name: "y"}}, RawInputContents: raw}, codes.InvalidArgument, "1 entries for 2 inputs"},
		{&inferencepb.ModelInferRequest{Inputs: []*input{{Name: "x", Parameters: shared}}, RawInputContents: raw}, codes.InvalidArgument, "1 entries for 0 inputs"},
	} {
		err := invoke(t, conn, "ModelInfer", tt.in, &inferencepb.ModelInferResponse{})
		if s := grpcstatus.Convert(err); s.Code() != tt.code || !strings.Contains(s.Message(), tt.want) {
			t.Errorf("%v: want %v, %q", err, tt.code, tt.want)
		}
	}
}

// Everything in a request is told to the service, and everything in its answer to the
// client, before the memory of the answer is given back.
func TestInfer(t *testing.T) {
	f := &fake{}
	var asked *inference.Request
	f.infer = func(ctx context.Context, r *inference.Request) (*inference.Response, error) {
		asked = r
		return f.echo(ctx, r)
	}
	conn, _ := listen(t, f, Options{})
	encoding.RegisterCompressor(zlibCompressor{})
	params := map[string]*inferencepb.InferParameter{
		"b": {ParameterChoice: &inferencepb.InferParameter_BoolParam{BoolParam: true}},
		"i": {ParameterChoice: &inferencepb.InferParameter_Int64Param{Int64Param: -5}},
		"u": {ParameterChoice: &inferencepb.InferParameter_Uint64Param{Uint64Param: math.MaxUint64}},
		"d": {ParameterChoice: &inferencepb.InferParameter_DoubleParam{DoubleParam: 0.5}},
		"s": {ParameterChoice: &inferencepb.InferParameter_StringParam{StringParam: "x"}},
		"n": {},
	}
	want := inference.Parameters{"b": true, "i": int64(-5), "u": uint64(math.MaxUint64), "d": 0.5, "s": "x"}
	big := bytes.Repeat([]byte{1, 2, 3, 4}, 1<<20) // more than the 4 MiB that grpc-go takes by default
	for i, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor("gzip")}, {grpc.UseCompressor("deflate")}, {grpc.UseCompressor("deflate")}} {
		out := &inferencepb.ModelInferResponse{}
		err := invoke(t, conn, "ModelInfer", &inferencepb.ModelInferRequest{
			ModelName: "m", ModelVersion: "3", Id: "id", Parameters: params,
			Inputs:           []*input{{Name: "x", Datatype: "FP32", Shape: []int64{1 << 10, 1 << 10}, Parameters: params}, {Name: "y", Datatype: "BF16", Shape: []int64{1}}},
			Outputs:          []*inferencepb.ModelInferRequest_InferRequestedOutputTensor{{Name: "o", Parameters: params}},
			RawInputContents: [][]byte{big, {5, 6}},
		}, out, append(opts, grpc.MaxCallRecvMsgSize(1<<30))...)
		if err != nil {
			t.Fatalf("options %d: %v", i, err)
		}
		if asked.Model != "m" || asked.Version != "3" || asked.ID != "id" || !reflect.DeepEqual(asked.Parameters, want) ||
			!reflect.DeepEqual(asked.Inputs[0].Parameters, want) || asked.Outputs[0].Name != "o" || !reflect.DeepEqual(asked.Outputs[0].Parameters, want) ||
			asked.Inputs[1].Datatype != inference.BF16 {
			t.Errorf("options %d: asked %v, %v", i, asked.Parameters, asked.Outputs)
		}
		if !bytes.Equal(out.RawOutputContents[0], big) || !bytes.Equal(out.RawOutputContents[1], []byte{5, 6}) || out.ModelVersion != "7" ||
			out.Id != "id" || !reflect.DeepEqual(parameters(out.Parameters), want) || out.Outputs[0].Shape[1] != 1<<10 {
			t.Errorf("options %d: answered %v %v", i, out.ModelVersion, out.Parameters)
		}
		f.mu.Lock()
		if f.released != 2*(i+1) {
			t.Errorf("options %d: %d outputs were released", i, f.released)
		}
		f.mu.Unlock()
	}
}

type zlibCompressor struct{}

func (zlibCompressor) Name() string { return "deflate" }
func (zlibCompressor) Compress(w io.Writer) (io.WriteCloser, error) {
	return zlib.NewWriter(w), nil
}
func (zlibCompressor) Decompress(r io.Reader) (io.Reader, error) { return openZlib(nil, r) }

func TestStream(t *testing.T) {
	f := &fake{}
	f.infer = func(ctx context.Context, r *inference.Request) (*inference.Response, error) {
		if r.ID == "bad" {
			return nil, inference.Errorf(inference.InvalidArgument, "this one is bad")
		}
		return f.echo(ctx, r)
	}
	conn, _ := listen(t, f, Options{})
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, procedure(serviceName, "ModelStreamInfer"))
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"a", "bad", "b"} {
		in := &inferencepb.ModelInferRequest{
			Id: id, Inputs: []*input{{Name: "x", Datatype: "UINT8", Shape: []int64{1}}}, RawInputContents: [][]byte{{byte(i)}},
		}
		if err := stream.SendMsg(in); err != nil {
			t.Fatal(err)
		}
		out := &inferencepb.ModelStreamInferResponse{}
		if err := stream.RecvMsg(out); err != nil {
			t.Fatal(err)
		}
		switch r := out.InferResponse; {
		case r.GetId() != id:
			t.Errorf("request %s: %v", id, out)
		case id == "bad" && out.ErrorMessage != "this one is bad":
			t.Errorf("a request that fails: %v", out)
		case id != "bad" && (out.ErrorMessage != "" || fmt.Sprint(r.RawOutputContents) != fmt.Sprintf("[[%d]]", i)):
			t.Errorf("request %s: %v", id, out)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&inferencepb.ModelStreamInferResponse{}); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
}

// Calls that are answered without connect get the answers and errors of those that are not, which
// have a deadline.
func TestPlain(t *testing.T) {
	f := &fake{}
	f.infer = f.echo
	conn, _ := listen(t, f, Options{MaxMessage: 1000})
	infer := func(ctx context.Context, in *inferencepb.ModelInferRequest) (*inferencepb.ModelInferResponse, error) {
		out := &inferencepb.ModelInferResponse{}
		return out, conn.Invoke(ctx, procedure(serviceName, "ModelInfer"), in, out)
	}
	for name, in := range map[string]*inferencepb.ModelInferRequest{
		"raw":       {ModelName: "m", Inputs: []*input{{Name: "x", Datatype: "UINT8", Shape: []int64{3}}}, RawInputContents: [][]byte{{1, 2, 3}}},
		"none":      {},
		"two raw":   {ModelName: "m", Inputs: []*input{{Name: "x", Datatype: "UINT8", Shape: []int64{3}}}, RawInputContents: [][]byte{{1}, {2}}},
		"too large": {ModelName: strings.Repeat("m", 2000)},
	} {
		deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var want *inferencepb.ModelInferResponse
		var wantErr error
		for i, ctx := range []context.Context{deadline, t.Context()} {
			got, err := infer(ctx, in)
			if i == 0 {
				want, wantErr = got, err
			} else if !proto.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("%s: got %v, %v; want %v, %v", name, got, err, want, wantErr)
			}
		}
	}
	f.infer = func(context.Context, *inference.Request) (*inference.Response, error) { panic("odd") }
	if _, err := infer(t.Context(), &inferencepb.ModelInferRequest{}); grpcstatus.Code(err) != codes.Internal || !strings.Contains(err.Error(), "odd") {
		t.Errorf("a panic gives %v", err)
	}
}

// Messages that are none, in requests that look plain, get a status each, and as many more are taken.
func TestPlainMalformed(t *testing.T) {
	f := &fake{}
	f.infer = f.echo
	_, host := listen(t, f, Options{MaxMessage: 1 << 30})
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &h2c}
	defer tr.CloseIdleConnections()
	for name, tt := range map[string]struct{ body, status string }{
		"nothing":          {"", "12"},
		"half a prefix":    {"\x00\x00", "13"},
		"lying":            {"\x00\x3f\xff\xff\xff", "13"},
		"two messages":     {"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "12"},
		"compressed":       {"\x01\x00\x00\x00\x00", "13"},
		"no protobuf":      {"\x00\x00\x00\x00\x01\xff", "3"},
		"larger than that": {"\x00\x7f\xff\xff\xff", "8"},
	} {
		resp, err := (&http.Client{Transport: tr}).Post("http://"+host+procedure(serviceName, "ModelInfer"), "application/grpc", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if got := resp.Trailer.Get("Grpc-Status") + resp.Header.Get("Grpc-Status"); err != nil || got != tt.status {
			t.Errorf("%s: status %s (%v), not %s; %v", name, got, err, tt.status, resp.Trailer)
		}
		_ = resp.Body.Close()
	}
}

// FuzzModelInfer feeds messages: whatever comes is refused, or read as tensors that take no more memory
// than the message.
func FuzzModelInfer(f *testing.F) {
	shared := map[string]*inferencepb.InferParameter{"shared_memory_region": {}}
	for _, m := range []*inferencepb.ModelInferRequest{
		{ModelName: "m", Inputs: []*input{{Name: "x", Datatype: "FP32", Shape: []int64{1}}}, RawInputContents: [][]byte{{1, 2, 3, 4}}},
		{Inputs: []*input{{Parameters: shared}, {Name: "y"}}, RawInputContents: [][]byte{{1}, {2}}},
		{Inputs: []*input{withContents("INT8", &inferencepb.InferTensorContents{IntContents: []int32{1, 2}})}, Outputs: []*inferencepb.ModelInferRequest_InferRequestedOutputTensor{{Name: "o"}}},
		{Inputs: []*input{withContents("BYTES", &inferencepb.InferTensorContents{BytesContents: [][]byte{{1}, nil}})}},
	} {
		text, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m := &inferencepb.ModelInferRequest{}
		if proto.Unmarshal(text, m) != nil {
			return
		}
		r, err := request(m)
		if err != nil {
			return
		}
		size := 0
		for _, in := range r.Inputs {
			size += len(in.Data)
		}
		if size > 8*len(text) {
			t.Fatalf("%d bytes of tensors in a message of %d", size, len(text))
		}
		if _, err := proto.Marshal(response(&inference.Response{Outputs: r.Inputs, Parameters: r.Parameters})); err != nil {
			t.Fatal(err)
		}
	})
}
