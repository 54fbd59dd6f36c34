// DatasetSection: the training file of a new run, how its columns are read, and its first rows as
// tokens with the trained ones marked.

#pragma once

#include "bridge/background.h"
#include "bridge/ui_services.h"
#include "widgets/card.h"

#include <QTimer>
#include <QWidget>

#include <optional>

class QCheckBox;
class QComboBox;
class QGridLayout;
class QLabel;
class QScrollArea;

namespace mr::ui {

class Legend;
class MessageLabel;
class PathEdit;
class TokenPreview;

class DatasetSection final : public QWidget
{
    Q_OBJECT

public:
    explicit DatasetSection(const UiServices& services, QWidget* parent = nullptr);

    QString path() const;
    void setPath(const QString& path);
    QString evalPath() const;
    void setEvalPath(const QString& path);
    DataSource source() const; // with the columns chosen
    void setSource(const DataSource& source);
    // Short sequences share rows of micro-batches.
    bool pack() const;
    void setPack(bool pack);
    // Of micro-batches in an epoch; 0: not known.
    std::int64_t batchRows() const;
    // What the rows are turned into depends on both; a change looks at the file again.
    void setModel(const QString& modelDir, std::int64_t seqLen);

    const std::optional<DatasetInfo>& info() const { return m_info; }
    // Nothing is being looked at, nor about to be.
    bool settled() const { return !m_delay.isActive() && !m_question.busy(); }
    MessageLabel* message() const { return m_message; }
    MessageLabel* packMessage() const { return m_packMessage; }
    MessageLabel* evalMessage() const { return m_evalMessage; }
    PathEdit* pathEdit() const { return m_path; }
    TokenPreview* preview() const { return m_preview; }

signals:
    void changed();

protected:
    void changeEvent(QEvent* event) override;

private:
    void build();
    void inspect();
    void show(const Result<DatasetInfo>& result);
    void showInfo();
    void showMapping();
    void showPacking();
    void clearPreview();
    QString summary(const DatasetInfo& info) const;
    void checkEvalPath();
    void retranslateUi();

    UiServices m_services;
    std::string m_modelDir;
    std::int64_t m_seqLen = 0;
    DataFormat m_format = DataFormat::Auto;
    std::map<std::string, std::string> m_columns; // chosen by the user; empty: found by name

    Card* m_card;
    QLabel* m_label;
    PathEdit* m_path;
    MessageLabel* m_message;
    QWidget* m_mapping;
    QGridLayout* m_mappingGrid;
    QLabel* m_previewTitle;
    Legend* m_legend;
    QScrollArea* m_previewArea;
    TokenPreview* m_preview;
    QCheckBox* m_pack;
    MessageLabel* m_packMessage;
    QLabel* m_evalLabel;
    PathEdit* m_evalPath;
    MessageLabel* m_evalMessage;
    QTimer m_delay;
    LatestOnly<Result<DatasetInfo>> m_question;
    std::optional<DatasetInfo> m_info;
};

} // namespace mr::ui
