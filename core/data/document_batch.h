// Documents collected until there is work for several threads.
//
// Threads    Confined to its owner; the documents may be read by any thread meanwhile.
// Ownership  Keeps copies of documents, whose memory is used again, and borrows their sources.

#pragma once

#include "core/data/documents.h"

#include <cstddef>
#include <span>
#include <vector>

namespace mr {

class DocumentBatch
{
public:
    DocumentBatch();

    // Whether the document must not wait with others: a part of a longer text, whose parts belong
    // to one thread, or work enough by itself. Asked once for each document, in their order.
    bool isAlone(const Document& document);
    // True: the batch is full.
    bool add(const DataSource& source, const Document& document);

    // Documents handed out together; their number does not depend on the threads.
    struct Piece {
        std::span<const DataSource* const> sources; // of each document
        std::span<const Document> documents;
    };
    std::size_t pieces() const noexcept;
    Piece piece(std::size_t index) const noexcept;

    void clear() noexcept { m_waiting = m_bytes = 0; }

private:
    std::vector<Document> m_documents; // [0, m_waiting) wait; the others keep their memory
    std::vector<const DataSource*> m_sources;
    std::size_t m_waiting = 0;
    std::size_t m_bytes = 0;
    bool m_isInText = false; // the next document has the rest of a text
};

} // namespace mr
