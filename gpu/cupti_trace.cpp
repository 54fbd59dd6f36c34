#include "gpu/cupti_trace.h"

#include "gpu/kernel_name.h"
#include "gpu/plugin_abi.h"

// Records are laid out as the headers of one major version say; no other library will do.
#if __has_include(<cupti_version.h>)
#include <cupti_version.h>
#if CUPTI_API_VERSION / 10000 == 13
#define MR_HAVE_CUPTI
#endif
#endif

#ifdef MR_HAVE_CUPTI
#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>
#endif

namespace mr::gpu {
namespace {

#ifdef MR_HAVE_CUPTI

Status cannotTrace(std::string text)
{
    return Status::error(ErrorKind::InvalidArgument, "CUPTI: " + std::move(text));
}

constexpr const char* kLibraries[] = {"libcupti.so.13", "libcupti.so"};
constexpr unsigned kMajor = 13;

constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

struct CuptiApi {
    decltype(&::cuptiGetVersion) getVersion = nullptr;
    decltype(&::cuptiGetResultString) getResultString = nullptr;
    decltype(&::cuptiActivityRegisterCallbacks) registerCallbacks = nullptr;
    decltype(&::cuptiActivityEnable) enable = nullptr;
    decltype(&::cuptiActivityDisable) disable = nullptr;
    decltype(&::cuptiActivityFlushAll) flushAll = nullptr;
    decltype(&::cuptiActivityGetNextRecord) getNextRecord = nullptr;
    decltype(&::cuptiActivityGetNumDroppedRecords) getNumDropped = nullptr;

    Status check(CUptiResult result, const char* what) const
    {
        if (result == CUPTI_SUCCESS)
            return {};
        const char* text = nullptr;
        getResultString(result, &text);
        std::string message = std::string(what) + ": " + (text ? text : "unknown error");
        if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
            message += "; the driver lets only an administrator profile";
        return cannotTrace(std::move(message));
    }
};

template <typename F>
bool find(void* library, const char* name, F& function)
{
    function = reinterpret_cast<F>(::dlsym(library, name));
    return function != nullptr;
}

// Stays loaded: CUPTI has threads of its own once it was used.
Result<CuptiApi> loadCupti()
{
    void* library = nullptr;
    for (const char* name : kLibraries)
        if (!library)
            library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return cannotTrace("libcupti.so.13 is not on this machine (it comes with the CUDA toolkit, "
                           "package cuda-cupti-13-0); nothing is traced");
    CuptiApi api;
    const bool complete = find(library, "cuptiGetVersion", api.getVersion) &&
                          find(library, "cuptiGetResultString", api.getResultString) &&
                          find(library, "cuptiActivityRegisterCallbacks", api.registerCallbacks) &&
                          find(library, "cuptiActivityEnable", api.enable) &&
                          find(library, "cuptiActivityDisable", api.disable) &&
                          find(library, "cuptiActivityFlushAll", api.flushAll) &&
                          find(library, "cuptiActivityGetNextRecord", api.getNextRecord) &&
                          find(library, "cuptiActivityGetNumDroppedRecords", api.getNumDropped);
    std::uint32_t version = 0;
    if (!complete || api.getVersion(&version) != CUPTI_SUCCESS || version / 10000 != kMajor)
        return cannotTrace("the libcupti of this machine is not of CUDA 13; nothing is traced");
    return api;
}

struct Span {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

// Data that the callbacks collect, from threads of CUPTI.
struct Collected {
    CuptiApi api; // constant once callbacks are registered
    bool registered = false;
    bool inUse = false;

    std::mutex mutex; // guards the rest
    std::vector<Span> busy;
    ActivityTotals totals;
    std::map<std::string, KernelTime> kernelTimes; // by mangled name
    bool unreadable = false;
};

Collected& collected()
{
    static auto* const all = new Collected; // never freed: CUPTI may call back until the very end
    return *all;
}

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

void CUPTIAPI giveBuffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* mostRecords)
{
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
    *bytes = *buffer ? kBufferBytes : 0;
    *mostRecords = 0; // as many as fit
}

void addKernel(Collected& all, const CUpti_ActivityKernel10& kernel)
{
    ++all.totals.kernels;
    all.busy.push_back({kernel.start, kernel.end});
    const auto ns = static_cast<std::int64_t>(kernel.end - kernel.start);
    KernelTime& time = all.kernelTimes[kernel.name ? kernel.name : "without a name"];
    time.leastNs = time.launches == 0 ? ns : std::min(time.leastNs, ns);
    time.mostNs = std::max(time.mostNs, ns);
    time.ns += ns;
    ++time.launches;
}

void addCopy(Collected& all, const CUpti_ActivityMemcpy6& copy)
{
    const auto bytes = static_cast<std::int64_t>(copy.bytes);
    if (copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD)
        all.totals.hostToDeviceBytes += bytes;
    else if (copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH)
        all.totals.deviceToHostBytes += bytes;
    else if (copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD)
        all.busy.push_back({copy.start, copy.end});
}

void addRecord(Collected& all, const CUpti_Activity& record)
{
    if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        addKernel(all, reinterpret_cast<const CUpti_ActivityKernel10&>(record));
    else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        addCopy(all, reinterpret_cast<const CUpti_ActivityMemcpy6&>(record));
    else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
        all.busy.push_back({fill.start, fill.end});
    }
}

void CUPTIAPI takeBuffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
    std::size_t /*bytes*/, std::size_t validBytes)
{
    Collected& all = collected();
    const std::lock_guard lock(all.mutex);
    CUpti_Activity* record = nullptr;
    CUptiResult result = CUPTI_SUCCESS;
    while (validBytes > 0 &&
           (result = all.api.getNextRecord(buffer, validBytes, &record)) == CUPTI_SUCCESS)
        addRecord(all, *record);
    all.unreadable =
        all.unreadable || (result != CUPTI_SUCCESS && result != CUPTI_ERROR_MAX_LIMIT_REACHED);
    std::size_t dropped = 0;
    if (all.api.getNumDropped(context, stream, &dropped) == CUPTI_SUCCESS)
        all.totals.dropped += static_cast<std::int64_t>(dropped);
    std::free(buffer);
}

// Nanoseconds in which at least one span runs.
std::int64_t unionOf(std::vector<Span>& spans)
{
    std::sort(
        spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    std::uint64_t total = 0;
    std::uint64_t until = 0;
    for (const Span& span : spans) {
        const std::uint64_t from = std::max(span.begin, until);
        if (span.end > from)
            total += span.end - from;
        until = std::max(until, span.end);
    }
    return static_cast<std::int64_t>(total);
}

class CuptiTrace final : public ActivityTrace
{
public:
    ~CuptiTrace() override
    {
        stop();
        collected().inUse = false;
    }

    Status begin() override
    {
        Collected& all = collected();
        {
            const std::lock_guard lock(all.mutex);
            all.busy.clear();
            all.totals = {};
            all.kernelTimes.clear();
            all.unreadable = false;
        }
        for (const CUpti_ActivityKind kind : kKinds) {
            MR_TRY(all.api.check(all.api.enable(kind), "cuptiActivityEnable"));
            m_enabled.push_back(kind);
        }
        return {};
    }

    Result<ActivityTotals> end() override
    {
        Collected& all = collected();
        stop();
        const std::lock_guard lock(all.mutex);
        if (all.unreadable)
            return Status::error(ErrorKind::Internal, "CUPTI: a buffer could not be read");
        all.totals.busyNs = unionOf(all.busy);
        for (auto& [mangled, time] : all.kernelTimes) {
            time.name = kernelNameOf(mangled);
            all.totals.kernelTimes.push_back(time);
        }
        return all.totals;
    }

private:
    // Also delivers the activity records still on their way. Precondition: the lock is not held.
    void stop()
    {
        if (m_enabled.empty())
            return;
        const CuptiApi& api = collected().api;
        api.flushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        for (const CUpti_ActivityKind kind : m_enabled)
            api.disable(kind);
        m_enabled.clear();
    }

    std::vector<CUpti_ActivityKind> m_enabled;
};

Result<std::unique_ptr<ActivityTrace>> makeTrace()
{
    Collected& all = collected();
    if (all.inUse)
        return Status::error(ErrorKind::Internal, "CUPTI: a trace is open already");
    if (!all.registered) {
        auto api = loadCupti();
        MR_TRY(api.status());
        all.api = api.value();
        MR_TRY(all.api.check(
            all.api.registerCallbacks(&giveBuffer, &takeBuffer), "cuptiActivityRegisterCallbacks"));
        all.registered = true;
    }
    all.inUse = true;
    return std::unique_ptr<ActivityTrace>(std::make_unique<CuptiTrace>());
}

#else

Result<std::unique_ptr<ActivityTrace>> makeTrace()
{
    return Status::error(ErrorKind::InvalidArgument,
        "CUPTI: this plugin was built without the headers of CUPTI 13; nothing is traced");
}

#endif

} // namespace
} // namespace mr::gpu

extern "C" __attribute__((visibility("default"))) const mr::gpu::CudaTracePlugin*
millraceCudaTrace()
{
    static const mr::gpu::CudaTracePlugin plugin{mr::gpu::kPluginAbi, &mr::gpu::makeTrace};
    return &plugin;
}
