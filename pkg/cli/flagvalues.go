package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/settings"
)

// listenAddress is a flag with a place to listen at: "0.0.0.0:9090", ":9090".
type listenAddress string

// String is the address; empty: nowhere.
func (a *listenAddress) String() string { return string(*a) }

// Type names the value in the help.
func (a *listenAddress) Type() string { return "address" }

// Set takes an address with a port.
func (a *listenAddress) Set(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("it is no address with a port, such as 0.0.0.0:8080 or :8080")
	}
	*a = listenAddress(text)
	return nil
}

// livenessFlag is the flag with the place of the probes: an URL, or an address.
type livenessFlag struct {
	health *settings.Health
	text   string
}

// String is what was given.
func (e *livenessFlag) String() string { return e.text }

// Type names the value in the help.
func (e *livenessFlag) Type() string { return "endpoint" }

// Set takes a place. Without a path it is that of the settings.
func (e *livenessFlag) Set(text string) error {
	place := &url.URL{Host: text}
	if strings.Contains(text, "://") {
		var err error
		if place, err = url.Parse(text); err != nil {
			return fmt.Errorf("it is no URL: %w", err)
		}
		switch {
		case place.Scheme != "http":
			return fmt.Errorf("it is served by http, and not by %s", place.Scheme)
		case place.User != nil || place.RawQuery != "" || place.Fragment != "":
			return errors.New("it has more than an address and a path")
		}
	}
	if err := (*listenAddress)(&e.health.Address).Set(place.Host); err != nil {
		return err
	}
	if place.Path != "" {
		e.health.LivenessPath = place.Path
	}
	e.text = text
	return nil
}

// lifetimeFlag is a flag with a time in seconds, as Kopf has it, or with a unit.
type lifetimeFlag time.Duration

// String is the time with its units.
func (l *lifetimeFlag) String() string { return time.Duration(*l).String() }

// Type names the value in the help.
func (l *lifetimeFlag) Type() string { return "duration" }

// Set takes "90" and "1m30s".
func (l *lifetimeFlag) Set(text string) error {
	if _, err := strconv.ParseUint(text, 10, 32); err == nil {
		text += "s"
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < time.Second {
		return errors.New("it is no time of at least a second, such as 60 or 10m")
	}
	*l = lifetimeFlag(parsed)
	return nil
}
