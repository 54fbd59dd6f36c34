// PathEdit: a path as text, with a Browse button, and a place to drop a file or folder on.

#pragma once

#include <QWidget>

class QLineEdit;
class QToolButton;

namespace mr::ui {

class PathEdit final : public QWidget
{
    Q_OBJECT

public:
    enum class Want { Folder, File };

    explicit PathEdit(Want want, QWidget* parent = nullptr);

    QString path() const; // cleaned, absolute where it was relative to the home folder "~"
    void setPath(const QString& path);
    void setTexts(const QString& accessibleName, const QString& placeholder);
    QLineEdit* edit() const { return m_edit; }
    QWidget* lastInFocusOrder() const;

signals:
    void pathChanged(const QString& path);

protected:
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void browse();
    void retranslateUi();

    Want m_want;
    QLineEdit* m_edit;
    QToolButton* m_browse;
};

} // namespace mr::ui
