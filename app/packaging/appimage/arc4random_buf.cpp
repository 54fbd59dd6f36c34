// arc4random_buf(), which glibc has from 2.36 on: for the one library of Debian 12 that would keep
// the AppImage from starting on a system with 2.35, as Ubuntu 22.04. Debian's static libexpat is
// linked with it to a shared one.

#include <unistd.h>

#include <cstddef>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) void arc4random_buf(void* to, std::size_t bytes);

extern "C" void arc4random_buf(void* to, std::size_t bytes)
{
    constexpr std::size_t kAtOnce = 256; // as many as getentropy() gives
    auto* place = static_cast<unsigned char*>(to);
    while (bytes > 0) {
        const std::size_t piece = bytes < kAtOnce ? bytes : kAtOnce;
        if (::getentropy(place, piece) != 0)
            std::abort(); // a caller of arc4random_buf() cannot be told
        place += piece;
        bytes -= piece;
    }
}
