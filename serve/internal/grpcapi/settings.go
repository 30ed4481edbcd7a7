package grpcapi

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

func (s *server) logSettings(_ context.Context, r *inferencepb.LogSettingsRequest) (*inferencepb.LogSettingsResponse, error) {
	values := map[string]any{}
	for k, p := range r.GetSettings() {
		switch v := p.GetParameterChoice().(type) {
		case *inferencepb.LogSettingsRequest_SettingValue_BoolParam:
			values[k] = v.BoolParam
		case *inferencepb.LogSettingsRequest_SettingValue_Uint32Param:
			values[k] = int64(v.Uint32Param)
		case *inferencepb.LogSettingsRequest_SettingValue_StringParam:
			values[k] = v.StringParam
		}
	}
	now, err := s.settings(inference.LogSettings, "", values)
	if err != nil {
		return nil, err
	}
	out := &inferencepb.LogSettingsResponse{Settings: map[string]*inferencepb.LogSettingsResponse_SettingValue{}}
	for k, v := range now {
		m := &inferencepb.LogSettingsResponse_SettingValue{}
		switch v := v.(type) {
		case bool:
			m.ParameterChoice = &inferencepb.LogSettingsResponse_SettingValue_BoolParam{BoolParam: v}
		case int64:
			m.ParameterChoice = &inferencepb.LogSettingsResponse_SettingValue_Uint32Param{Uint32Param: uint32(v)}
		default:
			m.ParameterChoice = &inferencepb.LogSettingsResponse_SettingValue_StringParam{StringParam: fmt.Sprint(v)}
		}
		out.Settings[k] = m
	}
	return out, nil
}

// traceSetting takes a setting without a value as one to be cleared, which is nil, one
// with one value as a string, and others as lists.
func (s *server) traceSetting(_ context.Context, r *inferencepb.TraceSettingRequest) (*inferencepb.TraceSettingResponse, error) {
	values := map[string]any{}
	for k, v := range r.GetSettings() {
		switch list := v.GetValue(); len(list) {
		case 0:
			values[k] = nil
		case 1:
			values[k] = list[0]
		default:
			values[k] = list
		}
	}
	now, err := s.settings(inference.TraceSettings, r.GetModelName(), values)
	if err != nil {
		return nil, err
	}
	out := &inferencepb.TraceSettingResponse{Settings: map[string]*inferencepb.TraceSettingResponse_SettingValue{}}
	for k, v := range now {
		m := &inferencepb.TraceSettingResponse_SettingValue{}
		switch v := v.(type) {
		case nil:
		case []string:
			m.Value = v
		default:
			m.Value = []string{fmt.Sprint(v)}
		}
		out.Settings[k] = m
	}
	return out, nil
}

func (s *server) settings(kind inference.SettingsKind, model string, values map[string]any) (map[string]any, error) {
	if len(values) == 0 {
		return s.Settings(kind, model)
	}
	return s.Set(kind, model, values)
}
