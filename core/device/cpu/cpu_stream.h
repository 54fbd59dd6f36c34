// CpuStream: a queue of closures, run at once (inline) or by a worker thread (threaded).
//
// CPU ops see this of the device: an op checks its arguments and enqueues a closure that holds a
// copy of them.
//
//     return static_cast<CpuStream&>(stream).enqueue([args, this] { computeLinear(args); });
//
// Threads  enqueue(), record(), waitFor(), copy(): engine thread. Closures run on the engine
//          thread (inline) or on the stream's own thread (threaded), in order.
// Errors   A closure returns nothing or a Status; it may throw std::bad_alloc. A failure makes the
//          device lost: work enqueued on any of its streams is then skipped, and every
//          Event::wait() says DeviceLost with the first failure.
// Lifetime Memory that a closure points to must live until an event recorded after it is done. The
//          destructor runs the enqueued work, then joins; a wait for a gate or point that has
//          not come by then is given up, and the rest skipped.

#pragma once

#include "core/device/device.h"

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace mr {

class CpuStream : public Stream
{
public:
    // Most bytes of one enqueued closure. It copies argument structs, not tensors.
    static constexpr std::size_t kTaskBytes = 688;

    // A closure in place of a heap allocation. Trivial, so that dropping one is nothing.
    struct alignas(16) Task {
        std::byte closure[kTaskBytes];
        Status (*run)(void* closure);
        bool always; // runs even when the device is lost: others wait for its effect
    };

    // Closures enqueued but not finished, per stream, beyond which enqueue() starts the workers
    // (as Device::submit does) and blocks until there is room.
    static constexpr std::size_t kMaxTasks = 16384;

    template <typename F>
    Status enqueue(F work)
    {
        put(std::move(work), false);
        return {};
    }

protected:
    template <typename F>
    void put(F work, bool always)
    {
        static_assert(sizeof(F) <= kTaskBytes);
        static_assert(alignof(F) <= alignof(Task));
        static_assert(std::is_trivially_copyable_v<F>, "capture views and numbers, not owners");
        Task& task = nextTask();
        new (task.closure) F(std::move(work));
        task.always = always;
        task.run = [](void* closure) -> Status {
            if constexpr (std::is_same_v<std::invoke_result_t<F&>, Status>) {
                return (*static_cast<F*>(closure))();
            } else {
                (*static_cast<F*>(closure))();
                return {};
            }
        };
        commitTask();
    }

    // The slot to fill; blocks while all are taken.
    virtual Task& nextTask() = 0;
    // Inline: runs it. Threaded: keeps it for the worker.
    virtual void commitTask() = 0;
};

} // namespace mr
