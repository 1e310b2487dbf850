// "/" focuses the search box, as on many sites, unless something is being typed already.
export default function () {
  const focus = (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable=true]")
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || typing) return
    const box = document.querySelector(
      ".st-key-q input, .st-key-ask textarea, .st-key-listed input, .stMainBlockContainer input[type=text]",
    )
    if (!box) return
    event.preventDefault()
    box.focus()
    box.select?.()
  }
  document.addEventListener("keydown", focus)
  document.documentElement.dataset.keys = "ready" // for a test, which is quicker than a person
  return () => document.removeEventListener("keydown", focus)
}
