package logformat

import (
	"time"

	"go.uber.org/zap/zapcore"
)

// The layouts of times. Times in JSON are in UTC, with microseconds.
const (
	fullTime = "2006-01-02T15:04:05.000Z0700"
	jsonTime = "2006-01-02T15:04:05.000000Z07:00"
)

func (o Options) encoder() zapcore.Encoder {
	config := zapcore.EncoderConfig{
		MessageKey: "message", LevelKey: "severity", TimeKey: "timestamp", NameKey: "logger", StacktraceKey: "stack",
		EncodeLevel:    o.encodeLevel,
		EncodeTime:     zapcore.TimeEncoderOfLayout(fullTime),
		EncodeDuration: zapcore.StringDurationEncoder,
	}
	switch o.Format {
	case JSON:
		config.EncodeTime = func(t time.Time, line zapcore.PrimitiveArrayEncoder) { line.AppendString(t.UTC().Format(jsonTime)) }
		return zapcore.NewJSONEncoder(config)
	case Plain:
		config.LevelKey = zapcore.OmitKey
		config.TimeKey = zapcore.OmitKey
		config.NameKey = zapcore.OmitKey
		config.ConsoleSeparator = " "
	}
	return zapcore.NewConsoleEncoder(config)
}

// encodeLevel writes a level. All levels below info are written as debug.
func (o Options) encodeLevel(level zapcore.Level, line zapcore.PrimitiveArrayEncoder) {
	level = max(level, zapcore.DebugLevel)
	switch {
	case o.Format == JSON:
		zapcore.LowercaseLevelEncoder(level, line)
	case o.Colors:
		zapcore.CapitalColorLevelEncoder(level, line)
	default:
		zapcore.CapitalLevelEncoder(level, line)
	}
}
