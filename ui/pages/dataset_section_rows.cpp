// The rows of the training file that a run leaves out, chosen in RowChecksDialog.

#include "pages/dataset_section.h"
#include "pages/row_checks_dialog.h"

namespace mr::ui {

void DatasetSection::checkRows()
{
    CheckRequest request;
    request.source = source();
    if (!evalPath().isEmpty()) {
        request.evaluation = source(); // both files are read in the same manner
        request.evaluation->path = evalPath().toStdString();
        request.evaluation->excluded = {};
    }
    request.modelDir = m_modelDir;
    request.seqLen = m_seqLen;
    auto* dialog = new RowChecksDialog(m_services, std::move(request), this);
    connect(dialog, &RowChecksDialog::chosen, this, &DatasetSection::exclude);
    dialog->open();
}

void DatasetSection::exclude(const RowList& rows, quint64 fileBytes)
{
    m_excluded = rows;
    m_excludedOf = rows.empty() ? 0 : fileBytes;
    m_info.reset();
    m_delay.start();
    emit changed();
}

} // namespace mr::ui
