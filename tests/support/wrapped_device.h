// WrappedDevice: a device in front of a device, with one place that sees every call before it is
// made. What tests need is derived from it: RecordingDevice writes calls down, CountingDevice
// counts them, FailingDevice refuses one.
//
// Threads  As device.h; the hook runs on the calling (engine) thread.
// Lifetime The wrapped device outlives the wrapper.

#pragma once

#include "core/device/device.h"
#include "core/device/ops.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mr::test {

struct DeviceCall {
    std::string_view stream;  // empty: a call of the device itself
    std::string_view what;    // "allocate", "submit", "record", "wait", "copy", or the op's name
    std::string_view tag;     // the allocation's, or the new object's name
    std::uint64_t number = 0; // bytes of an allocation or copy; generation of a gate
    const Event* event = nullptr;
    const Gate* gate = nullptr;
};

class WrappedDevice : public Device
{
public:
    explicit WrappedDevice(Device& inner);
    ~WrappedDevice() override;

    const DeviceInfo& info() const noexcept override { return m_inner.info(); }
    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) override;
    Result<std::unique_ptr<Stream>> createStream(std::string_view name) override;
    Result<std::unique_ptr<Event>> createEvent() override;
    Result<std::unique_ptr<Gate>> createGate(std::string_view name) override;
    void submit() noexcept override;
    MemoryUsage memoryUsage() const noexcept override { return m_inner.memoryUsage(); }
    LinkBytes linkBytes() const noexcept override { return m_inner.linkBytes(); }
    std::optional<std::size_t> freeDeviceBytes() const noexcept override
    {
        return m_inner.freeDeviceBytes();
    }
    Ops& ops() noexcept override;

    // Before the call is made; an error here goes to the caller instead.
    virtual Status onCall(const DeviceCall& call) = 0;
    // True for a "wait": the stream does not wait. Asked after onCall().
    virtual bool leavesOut(const DeviceCall&) { return false; }
    // After a product was enqueued.
    virtual void onProduct(const LinearArgs&) {}
    virtual void onProduct(const LinearBackwardInputArgs&) {}
    virtual void onProduct(const LinearBackwardWeightArgs&) {}
    virtual void onProduct(const CodeProductArgs&) {}
    virtual void onProduct(const WindowProductArgs&) {}
    // The wrapped device's own gate behind one that createGate() returned.
    virtual Gate& innerGate(Gate& gate) { return gate; }

protected:
    virtual void onEvent(const Event&) {}
    virtual void onGate(const Gate&, std::string_view) {}

private:
    Device& m_inner;
    std::unique_ptr<Ops> m_ops;
};

// The calls as lines of text:
//     allocate 4096 bytes of weights        compute: linear
//     copy-in: copy 4096 bytes              compute: wait e0
//     copy-in: record e0                    copy-in: wait updates 3
class RecordingDevice final : public WrappedDevice
{
public:
    using WrappedDevice::WrappedDevice;

    const std::vector<std::string>& lines() const noexcept { return m_lines; }
    void clear() { m_lines.clear(); }

    Status onCall(const DeviceCall& call) override;

protected:
    void onEvent(const Event& event) override;
    void onGate(const Gate& gate, std::string_view name) override;

private:
    std::vector<std::string> m_lines;
    std::map<const Event*, std::string> m_events; // "e0", "e1", ... in order of creation
    std::map<const Gate*, std::string> m_gates;
};

// Allocates nothing per call.
class CountingDevice final : public WrappedDevice
{
public:
    using WrappedDevice::WrappedDevice;

    std::uint64_t allocations() const noexcept { return m_allocations; }
    std::uint64_t enqueued() const noexcept { return m_enqueued; } // calls that name a stream

    Status onCall(const DeviceCall& call) override;

private:
    std::uint64_t m_allocations = 0;
    std::uint64_t m_enqueued = 0;
};

// Refuses one call; those before and after it go through.
class FailingDevice final : public WrappedDevice
{
public:
    // `failingCall` counts all calls that can fail, from 1.
    FailingDevice(Device& inner, std::uint64_t failingCall, ErrorKind kind)
        : WrappedDevice(inner)
        , m_failingCall(failingCall)
        , m_kind(kind)
    {
    }

    std::uint64_t calls() const noexcept { return m_calls; }

    Status onCall(const DeviceCall& call) override;

private:
    const std::uint64_t m_failingCall;
    const ErrorKind m_kind;
    std::uint64_t m_calls = 0;
};

} // namespace mr::test
