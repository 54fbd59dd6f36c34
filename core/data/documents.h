// Rows of a dataset as plain text, a prompt with its response or a conversation.
//
// Threads  Functions of their arguments.
// Errors   As in record_reader.h and columns.h.

#pragma once

#include "core/data/chat_parts.h"
#include "core/data/columns.h"
#include "core/data/conversation.h"
#include "core/data/record_reader.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct Document {
    std::int64_t row = 0; // in the file, from 1
    std::int64_t line = 0;
    bool isPair = false;
    std::string prompt;            // instruction and input joined; may be empty
    std::string response;          // pair: the answer
    std::string system;            // pair: text before it; may be empty
    std::vector<ChatTurn> history; // pair: the turns before it
    std::string chat;              // conversation: JSON of readConversation()'s result; else empty
    std::string text;              // otherwise
    bool goesOn = false;           // the next document has the rest of this text, which is one row
    RowStyle style = RowStyle::Auto;
    ChatParts drop; // conversation: parts to leave out
};

// The format, columns and mapping of a file, found from its rows.
struct DatasetShape {
    DataFormat format = DataFormat::Auto; // found
    std::vector<ColumnFacts> columns;
    ColumnMap map;         // text file: its one column
    ColumnRefusal refusal; // set where findShape() finds no mapping

    // Whether rows are conversations, which need a chat template.
    bool isChat() const;
};

// How `source` is read, its format being known.
RecordOptions recordOptions(const DataSource& source, DataFormat format);

struct TextCut {
    std::string split;
    bool perLine = false;
};

// Reads the whole file once. On an error `shape` holds the facts found before it. Rows that cannot
// be read are no error here as long as the rows before them settle the columns: readDocuments()
// meets them again.
Status findShape(const DataSource& source, DatasetShape& shape);

using DocumentSink = std::function<Status(const Document&)>;

// Every row in the order of the file. A row that cannot be read, or that the sink finds
// InvalidArgument, goes to `onBadRow`; empty: it is an error. Rows that must not be trained are one
// in any case. A row of DataSource::excluded goes to `onBadRow` as RowFault::Excluded, whatever is
// in it; it is an error if the file has another size than the one in which it was chosen.
Status readDocuments(const DataSource& source, const DatasetShape& shape, const TextCut& cut,
    const DocumentSink& sink, const BadRowSink& onBadRow = {});

} // namespace mr
