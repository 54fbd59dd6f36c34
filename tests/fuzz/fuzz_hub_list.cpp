#include "core/hub/hub_choice.h"
#include "core/hub/hub_list.h"
#include "core/hub/hub_names.h"
#include "core/hub/hub_places.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <filesystem>

namespace mr::fuzz {
namespace {

void stayInside(const HubPlaces& places, const HubFile& file, const std::filesystem::path& root)
{
    const std::string inside = root.string() + "/";
    for (const std::filesystem::path& path : {places.whole(file), places.incomplete(file),
             places.lock(file), places.folder() / file.path})
        require(path.lexically_normal().string().starts_with(inside), "a file outside its folder");
}

} // namespace

void hubList(std::string_view bytes)
{
    Result<HubListing> listing = parseHubList(bytes, "list");
    if (!check(listing))
        return;
    require(isCommit(listing.value().commit), "a commit of 40 digits");
    for (const HubKind kind : {HubKind::Model, HubKind::Dataset}) {
        HubRequest request;
        request.name = "org/name";
        request.kind = kind;
        const HubPlaces cache(request, "/cache", listing.value().commit);
        HubRequest plain = request;
        plain.into = "/into";
        const HubPlaces folder(plain, "/cache", listing.value().commit);
        for (const HubFile& file : listing.value().files) {
            stayInside(cache, file, "/cache");
            stayInside(folder, file, "/into");
        }
        Result<HubChoice> choice = chooseHubFiles(request, listing.value().files);
        if (check(choice))
            require(choice.value().files.size() + choice.value().leftOut.size() <=
                        listing.value().files.size(),
                "more files than there are");
    }
}

} // namespace mr::fuzz
