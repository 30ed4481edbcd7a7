package serve

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// sharedFile makes shared memory with a name of its own, and returns its path and its key.
func sharedFile(t *testing.T, data []byte) (path, key string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("shared memory has files on Linux only")
	}
	f, err := os.CreateTemp("/dev/shm", "loris-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.Remove(f.Name()) })
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name(), "/" + filepath.Base(f.Name())
}

func startShared(t *testing.T, allow bool) *Server {
	t.Helper()
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	s, err := New(Options{Models: dir, AllowClientSharedMemory: allow, Allow: []string{"shared-memory"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const sharedRow = `{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","parameters":{"shared_memory_region":"r","shared_memory_byte_size":8}}],
	"outputs":[{"name":"out0","parameters":{"shared_memory_region":"r","shared_memory_offset":8,"shared_memory_byte_size":8}}]}`

// Tensors come from and go to shared memory, over REST and over gRPC.
func TestSharedMemory(t *testing.T) {
	in := floatBytes(1, 2, 0, 0)
	path, key := sharedFile(t, in)
	hs := startServer(t, startShared(t, true))
	post := func(path, body string) string {
		t.Helper()
		code, answer := ask(t, "POST", hs.URL+path, body)
		if code != 200 {
			t.Fatal(path, code, answer)
		}
		return answer
	}
	post("/v2/systemsharedmemory/region/r/register", fmt.Sprintf(`{"key":%q,"offset":0,"byte_size":16}`, key))
	if _, answer := ask(t, "GET", hs.URL+"/v2/systemsharedmemory/status", ""); answer != fmt.Sprintf(`[{"name":"r","key":%q,"offset":0,"byte_size":16}]`, key) {
		t.Error(answer)
	}
	answer := post("/v2/models/m/infer", sharedRow)
	if !strings.Contains(answer, `"parameters":{"shared_memory_byte_size":8,"shared_memory_offset":8,"shared_memory_region":"r"}}`) || strings.Contains(answer, `"data"`) {
		t.Error(answer)
	}
	expectShared(t, path, floatBytes(1, 2, 2, 4))
	if answer := post("/v2/models/m/infer", strings.Replace(sharedRow, `"outputs"`, `"more"`, 1)); !strings.Contains(answer, `"data":[2,4]`) {
		t.Error(answer)
	}
	sharedOverGRPC(t, strings.TrimPrefix(hs.URL, "http://"))
	post("/v2/systemsharedmemory/unregister", "")
	if code, answer := ask(t, "POST", hs.URL+"/v2/models/m/infer", sharedRow); code != 400 || !strings.Contains(answer, `no region \"r\"`) {
		t.Error(code, answer)
	}
}

func floatBytes(v ...float32) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func expectShared(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// sharedOverGRPC uses a region of its own, and one input of two from the message.
func sharedOverGRPC(t *testing.T, address string) {
	t.Helper()
	path, key := sharedFile(t, floatBytes(0, 0, 3, 4))
	conn, err := grpc.NewClient("passthrough:"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call := func(method string, in, out any) error {
		return conn.Invoke(t.Context(), "/inference.GRPCInferenceService/"+method, in, out)
	}
	if err := call("SystemSharedMemoryRegister", &inferencepb.SystemSharedMemoryRegisterRequest{Name: "g", Key: key, Offset: 8, ByteSize: 8}, &inferencepb.SystemSharedMemoryRegisterResponse{}); err != nil {
		t.Fatal(err)
	}
	parameters := map[string]*inferencepb.InferParameter{
		"shared_memory_region":    {ParameterChoice: &inferencepb.InferParameter_StringParam{StringParam: "g"}},
		"shared_memory_byte_size": {ParameterChoice: &inferencepb.InferParameter_Int64Param{Int64Param: 8}},
	}
	var out inferencepb.ModelInferResponse
	err = call("ModelInfer", &inferencepb.ModelInferRequest{
		ModelName: "m",
		Inputs:    []*inferencepb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}, Parameters: parameters}},
		Outputs:   []*inferencepb.ModelInferRequest_InferRequestedOutputTensor{{Name: "out0", Parameters: parameters}},
	}, &out)
	if err != nil || len(out.RawOutputContents) != 1 || len(out.RawOutputContents[0]) != 0 || out.Outputs[0].Parameters["shared_memory_region"].GetStringParam() != "g" {
		t.Errorf("%v, %v", &out, err)
	}
	expectShared(t, path, floatBytes(0, 0, 6, 8))
	var all inferencepb.SystemSharedMemoryStatusResponse
	if err := call("SystemSharedMemoryStatus", &inferencepb.SystemSharedMemoryStatusRequest{}, &all); err != nil || len(all.Regions) != 2 || all.Regions["g"].Offset != 8 {
		t.Errorf("%v, %v", &all, err)
	}
	if err := call("SystemSharedMemoryStatus", &inferencepb.SystemSharedMemoryStatusRequest{Name: "none"}, &all); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
}

// What a client says wrongly of shared memory, or does to it, is refused and ends nothing.
func TestSharedMemoryRefuses(t *testing.T) {
	path, key := sharedFile(t, floatBytes(1, 2, 0, 0))
	hs := startServer(t, startShared(t, true))
	register := func(name, body string) (int, string) {
		return ask(t, "POST", hs.URL+"/v2/systemsharedmemory/region/"+name+"/register", body)
	}
	if code, answer := register("r", fmt.Sprintf(`{"key":%q,"byte_size":16}`, key)); code != 200 {
		t.Fatal(code, answer)
	}
	link := path + "-link"
	if err := os.Symlink("/etc/hostname", link); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(link)
	for body, want := range map[string]int{
		fmt.Sprintf(`{"key":%q,"byte_size":16}`, key):                    409, // the name is taken
		fmt.Sprintf(`{"key":%q,"byte_size":17}`, key):                    400,
		fmt.Sprintf(`{"key":%q,"offset":9,"byte_size":8}`, key):          400,
		fmt.Sprintf(`{"key":%q,"byte_size":0}`, key):                     400,
		fmt.Sprintf(`{"key":%q,"byte_size":-1}`, key):                    400,
		fmt.Sprintf(`{"key":%q,"byte_size":18446744073709551615}`, key):  400,
		fmt.Sprintf(`{"key":%q,"byte_size":8,"fd":3}`, key):              400,
		fmt.Sprintf(`{"key":%q,"byte_size":1}`, "/"+filepath.Base(link)): 400, // leads out of the folder
		`{"key":"/../etc/passwd","byte_size":1}`:                         400,
		`{"key":"..","byte_size":1}`:                                     400,
		`{"key":"/loris-test-is-not-there","byte_size":1}`:               400,
		`{"byte_size":1}`:                  400,
		`{"key":"a\u0000b","byte_size":1}`: 400,
	} {
		name := "other"
		if want == 409 {
			name = "r"
		}
		if code, answer := register(name, body); code != want {
			t.Errorf("%s: %d %s, want %d", body, code, answer, want)
		}
	}
	for change, want := range map[[2]string]string{
		{`_byte_size":8}}],`, `_byte_size":9}}],`}:                                            "expected",
		{`_byte_size":8}}],`, `_byte_size":17}}],`}:                                           "beyond the region",
		{`_byte_size":8}}],`, `_byte_size":-8}}],`}:                                           "no number of bytes",
		{`,"shared_memory_byte_size":8}}],`, `}}],`}:                                          "no number of bytes",
		{`_offset":8`, `_offset":9`}:                                                          "beyond the region",
		{`_offset":8,"shared_memory_byte_size":8`, `_offset":12,"shared_memory_byte_size":4`}: "has 8 bytes",
		{`"r","shared_memory_byte_size":8}}],`, `7,"shared_memory_byte_size":8}}],`}:          "is no name",
		{`"datatype":"FP32",`, `"datatype":"FP32","data":[1,2],`}:                             "data besides",
	} {
		body := strings.Replace(sharedRow, change[0], change[1], 1)
		if code, answer := ask(t, "POST", hs.URL+"/v2/models/m/infer", body); body == sharedRow || code != 400 || !strings.Contains(answer, want) {
			t.Errorf("%v: %d %s, want %s", change, code, answer, want)
		}
	}
	if err := os.Truncate(path, 4); err != nil { // what is mapped would end the process here
		t.Fatal(err)
	}
	if code, answer := ask(t, "POST", hs.URL+"/v2/models/m/infer", sharedRow); code != 400 || !strings.Contains(answer, "reading the region") {
		t.Error(code, answer)
	}
	off := startServer(t, startShared(t, false))
	for path, body := range map[string]string{"systemsharedmemory/region/r/register": fmt.Sprintf(`{"key":%q,"byte_size":4}`, key), "models/m/infer": sharedRow} {
		if code, answer := ask(t, "POST", off.URL+"/v2/"+path, body); code != 501 || !strings.Contains(answer, "--allow-client-shm") {
			t.Error(path, code, answer)
		}
	}
}

// Inputs of a request that lie in one region count each: a short request takes no more memory than one
// that holds its tensors.
func TestSharedMemoryOfAllInputs(t *testing.T) {
	_, key := sharedFile(t, make([]byte, 3000))
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	s, err := New(Options{Models: dir, AllowClientSharedMemory: true, Allow: []string{"shared-memory"}, MaxBody: 4096})
	if err != nil {
		t.Fatal(err)
	}
	hs := startServer(t, s)
	if code, answer := ask(t, "POST", hs.URL+"/v2/systemsharedmemory/region/r/register", fmt.Sprintf(`{"key":%q,"byte_size":3000}`, key)); code != 200 {
		t.Fatal(code, answer)
	}
	const input = `{"name":"x","shape":[1,750],"datatype":"FP32","parameters":{"shared_memory_region":"r","shared_memory_byte_size":3000}}`
	for inputs, want := range map[string]string{input: "shape", input + "," + strings.Replace(input, "x", "y", 1): "are more than"} {
		if code, answer := ask(t, "POST", hs.URL+"/v2/models/m/infer", `{"inputs":[`+inputs+`]}`); code < 400 || !strings.Contains(answer, want) {
			t.Errorf("%d %s, want %q", code, answer, want)
		}
	}
}
