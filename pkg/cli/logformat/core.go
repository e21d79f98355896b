package logformat

import (
	"cmp"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// stackKey is the key of the value with the stack of a panic.
const stackKey = "stack"

// core writes messages and values as lines. It encodes the values of a logger with each of
// its lines, so that objects are written in the same way, wherever they were added.
type core struct {
	zapcore.Core
	options Options
	values  []zapcore.Field
}

// With adds values to all later lines.
func (c core) With(values []zapcore.Field) zapcore.Core {
	c.values = slices.Concat(c.values, values)
	return c
}

// Check adds the core if the line must be written.
func (c core) Check(line zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(line.Level) {
		return checked.AddCore(line, c)
	}
	return checked
}

// Write writes a line.
func (c core) Write(line zapcore.Entry, values []zapcore.Field) error {
	values = slices.Concat(c.values, values)
	if c.options.Format != JSON { // the stack is several lines
		line.Stack = ""
		i := slices.IndexFunc(values, func(value zapcore.Field) bool {
			return value.Key == stackKey && value.Type == zapcore.StringType
		})
		if i >= 0 {
			line.Stack = escape(values[i].String, isControlInText)
			values = slices.Delete(values, i, i+1)
		}
	}
	line.LoggerName = escape(line.LoggerName, isControl)
	line.Message = escape(line.Message, isControl)
	return c.Core.Write(c.addObject(line, values))
}

// addObject adds the object to a line: as the prefix or as a value.
func (c core) addObject(line zapcore.Entry, values []zapcore.Field) (zapcore.Entry, []zapcore.Field) {
	for i, value := range values {
		object, known := objectOf(value)
		if !known {
			continue
		}
		if c.options.Prefix {
			line.Message = "[" + escape(object.String(), isControl) + "] " + line.Message
		}
		switch {
		case c.options.Format == JSON:
			values[i] = zap.Object(cmp.Or(c.options.ReferenceKey, DefaultReferenceKey), object)
		case c.options.Prefix:
			values = slices.Delete(values, i, i+1)
		default:
			values[i] = zap.String(value.Key, object.String())
		}
		break // further values with this key are ordinary values
	}
	return line, values
}
