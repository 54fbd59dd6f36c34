// The New run page's button that measures the rates of this machine again.

#include "pages/new_run_page.h"
#include "widgets/message_label.h"

#include <QPushButton>

namespace mr::ui {

// Off the UI thread: it takes seconds.
void NewRunPage::measureAgain()
{
    if (m_isMeasuring)
        return;
    m_isMeasuring = true;
    m_measured->clear();
    updateMeasure();
    background<Status>(
        this, [measure = m_services.measureRates, spec = runs().front()] { return measure(spec); },
        [this](const Status& status) {
            m_isMeasuring = false;
            updateMeasure();
            if (!status.ok())
                m_measured->show(
                    MessageLabel::Kind::Error, QString::fromStdString(status.message()));
            ask();
        });
}

void NewRunPage::updateMeasure()
{
    m_measure->setEnabled(!m_isMeasuring && !m_runActive);
    m_measure->setText(m_isMeasuring ? tr("Measuring…") : tr("Measure again"));
    m_measure->setToolTip(
        m_runActive ? tr("A run is active: what is measured beside it would be too slow.")
                    : tr("The forecast is made from rates that were measured on this machine. If "
                         "it was busy then, measure them again while nothing else is at work; it "
                         "takes some seconds."));
}

} // namespace mr::ui
