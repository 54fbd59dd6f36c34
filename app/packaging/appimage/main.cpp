// The program at the head of the AppImage. It unpacks the files behind it into the user's cache,
// once for each version, and starts AppRun there.
//
// Unlike the usual head of an AppImage it mounts nothing, so FUSE need not be there: containers,
// servers and fresh installations often lack it. The price is the disk that the files take.
//
// Source  The specification of AppImage, type 2: the bytes "AI" and 2 at offset 8, which the packer
//         writes, a file system behind the ELF file, the variables APPIMAGE, APPDIR, ARGV0 and OWD,
//         and the options --appimage-*.
//
// It is linked statically and for any x86-64, so it starts where nothing else does.

#include "cache.h"
#include "image.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace mr::appimage {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtracted = "squashfs-root";
constexpr const char* kHelp =
    "--appimage-extract          unpacks into ./squashfs-root; its AppRun starts the program\n"
    "--appimage-extract-and-run  starts the program, which it does without it, too\n"
    "--appimage-offset           where the squashfs begins in this file, in bytes\n"
    "--appimage-version          the type of this file\n"
    "\n"
    "Everything else goes to the program. Its files are unpacked once into\n"
    "$XDG_CACHE_HOME/millrace or ~/.cache/millrace, which may be deleted; FUSE is not needed.\n";

int fail(const std::string& sentence)
{
    (void)std::fprintf(stderr, "Millrace cannot start: %s.\n", sentence.c_str());
    return 1;
}

int extract(Image& image)
{
    if (::mkdir(kExtracted, 0755) != 0)
        return fail(systemFailure(kExtracted, "cannot be made") +
                    "; delete it, or go to a folder that you may write");
    const std::string failure = image.unpack(kExtracted);
    return failure.empty() ? 0 : fail(failure);
}

// Options of the file itself. Negative: it is none of them.
int ownOption(std::string_view option, Image& image)
{
    if (option == "--appimage-help")
        return std::fputs(kHelp, stdout) < 0;
    if (option == "--appimage-version")
        return std::puts("AppImage type 2, unpacked by its own program") < 0;
    if (option == "--appimage-offset")
        return std::printf("%llu\n", static_cast<unsigned long long>(image.offset())) < 0;
    if (option == "--appimage-extract")
        return extract(image);
    if (option == "--appimage-extract-and-run" || !option.starts_with("--appimage-"))
        return -1;
    return fail(std::string(option) + " is not an option of this file, which mounts nothing; "
                                      "--appimage-help lists them");
}

int start(const fs::path& file, const fs::path& folder, int argc, char** argv)
{
    std::error_code error;
    const fs::path program = folder / "AppRun";
    (void)::setenv("APPIMAGE", file.c_str(), 1);
    (void)::setenv("APPDIR", folder.c_str(), 1);
    (void)::setenv("ARGV0", argv[0], 1);
    (void)::setenv("OWD", fs::current_path(error).c_str(), 1);
    std::vector<char*> arguments{argv[0]};
    for (int i = 1; i < argc; ++i)
        if (i > 1 || std::string_view(argv[i]) != "--appimage-extract-and-run")
            arguments.push_back(argv[i]);
    arguments.push_back(nullptr);
    (void)::execv(program.c_str(), arguments.data());
    return fail(systemFailure(program, "cannot be started") +
                "; if its disk lets no program start, name another folder in XDG_CACHE_HOME; if "
                "files are missing there, delete " +
                folder.string());
}

int run(int argc, char** argv)
{
    std::error_code error;
    const fs::path file = fs::read_symlink("/proc/self/exe", error);
    if (error)
        return fail("/proc is not mounted, so the program does not find its own file");
    Image image;
    if (std::string failure = image.open(file); !failure.empty())
        return fail(failure);
    if (argc > 1)
        if (const int code = ownOption(argv[1], image); code >= 0)
            return code;
    const Unpacked unpacked = unpackOnce(image);
    if (!unpacked.failure.empty())
        return fail(unpacked.failure);
    return start(file, unpacked.folder, argc, argv);
}

} // namespace
} // namespace mr::appimage

int main(int argc, char** argv)
{
    return mr::appimage::run(argc, argv);
}
