"""Where in the author's code something went wrong.

Nothing is read to find it: a cell has no files, and looking for them would be told as something that was not granted.
"""

import traceback
from types import CodeType

#: The folder with the author's code as the interpreter names it, and as its author does.
_folder, _shown = "", ""


def authored(folder: str, shown: str) -> None:
    """Says where the author's code is, and what people call that folder."""
    global _folder, _shown
    _folder = folder.rstrip("/\\") + "/"
    _shown = "" if shown in ("", ".") else shown.rstrip("/") + "/"


def _name(file: str) -> str | None:
    """The file as its author knows it; None for one of somebody else's."""
    file = file.replace("\\", "/")
    return _shown + file.removeprefix(_folder) if len(_folder) > 1 and file.startswith(_folder) else None


def place(error: BaseException) -> str | None:
    """The innermost place in the author's code that an exception came through."""
    found, trace = None, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if name := _name(code.co_filename):
            found = f"{name}:{trace.tb_lineno}{_column(code, trace.tb_lasti)}"
        trace = trace.tb_next
    return found


def words(error: BaseException) -> str:
    """An exception with its type, its text and its place."""
    found = place(error)
    text = f": {error}" if str(error) else ""
    return f"{type(error).__name__}{text}{f' ({found})' if found else ''}"


def shown(error: BaseException) -> str:
    """A whole traceback without the lines of other people's modules. It reads files: for use outside a cell."""
    told = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = told
    while part is not None:
        part.stack = traceback.StackSummary.from_list([frame for frame in part.stack if _name(frame.filename)])
        part = part.__cause__ or part.__context__
    return "".join(told.format()).strip()


def _column(code: CodeType, instruction: int) -> str:
    """Where in the line an instruction comes from, counted from 1."""
    for number, (_, _, column, _) in enumerate(code.co_positions()):
        if number == instruction // 2:
            return "" if column is None else f":{column + 1}"
    return ""
