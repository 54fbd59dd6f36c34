#include "core/data/document_batch.h"

#include <algorithm>

namespace mr {
namespace {

constexpr std::size_t kDocumentsOfAPiece = 32;
constexpr std::size_t kMostDocuments = 8192;
// A hundred milliseconds for a slow thread.
constexpr std::size_t kMostWaitingBytes = std::size_t{2} << 20;

std::size_t bytesOf(const Document& document)
{
    std::size_t bytes = document.prompt.size() + document.response.size() + document.chat.size() +
                        document.text.size() + document.system.size();
    for (const ChatTurn& turn : document.history)
        bytes += turn.question.size() + turn.answer.size();
    return bytes;
}

} // namespace

DocumentBatch::DocumentBatch()
    : m_documents(kMostDocuments)
    , m_sources(kMostDocuments)
{
}

bool DocumentBatch::isAlone(const Document& document)
{
    const bool isPart = document.goesOn || m_isInText;
    m_isInText = document.goesOn;
    return isPart || bytesOf(document) >= kMostWaitingBytes;
}

bool DocumentBatch::add(const DataSource& source, const Document& document)
{
    m_sources[m_waiting] = &source;
    m_documents[m_waiting++] = document;
    m_bytes += bytesOf(document);
    return m_waiting == kMostDocuments || m_bytes >= kMostWaitingBytes;
}

std::size_t DocumentBatch::pieces() const noexcept
{
    return (m_waiting + kDocumentsOfAPiece - 1) / kDocumentsOfAPiece;
}

DocumentBatch::Piece DocumentBatch::piece(std::size_t index) const noexcept
{
    const std::size_t begin = index * kDocumentsOfAPiece;
    const std::size_t count = std::min(kDocumentsOfAPiece, m_waiting - begin);
    return {
        std::span(m_sources).subspan(begin, count), std::span(m_documents).subspan(begin, count)};
}

} // namespace mr
