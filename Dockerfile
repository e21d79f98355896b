# syntax=docker/dockerfile:1
# The image of the example manager, or of another program of this module:
#
#	docker build --build-arg VERSION=v1.2.3 --tag registry.example.com/kopf-manager:v1.2.3 .
#
# The compiler runs natively, also for the image of another architecture
# (docker buildx build --platform linux/amd64,linux/arm64).
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd cmd
COPY internal internal
COPY pkg pkg
ARG VERSION=unknown
ARG PROGRAM=manager
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w -X main.version=$VERSION" -o /out/manager ./cmd/$PROGRAM

# No shell, no package manager: certificates, time zones, and a user that is not root.
FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/manager /manager
# The user is a number, so that Kubernetes can verify that it is not root.
USER 65532:65532
ENTRYPOINT ["/manager"]
