#include "core/hub/list_body.h"

#include "core/hub/hub_list.h"

#include <fmt/format.h>

namespace mr {
namespace {

Status listTooLarge()
{
    return Status::error(ErrorKind::DataCorrupt,
        "the list of files is larger than 64 MiB, which none of a hub is; check HF_ENDPOINT");
}

} // namespace

Status ListBody::head(const HubReply& reply)
{
    m_text.clear();
    if (reply.head.status != 200)
        return Status::error(ErrorKind::Io,
            fmt::format("{} answers the question for the list of files with status {}; check "
                        "HF_ENDPOINT",
                reply.host, reply.head.status));
    return contentLength(reply.head).value_or(0) > kMostHubListBytes ? listTooLarge() : Status();
}

Status ListBody::body(std::span<const std::byte> piece)
{
    m_received += piece.size();
    if (piece.size() > kMostHubListBytes - m_text.size())
        return listTooLarge();
    m_text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
}

} // namespace mr
