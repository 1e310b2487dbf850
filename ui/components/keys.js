// "/" focuses the search box, as on many sites, unless something is being typed already. The listener belongs to the
// document and is added once: the component itself comes and goes with the page.
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

export default function () {
  if (document.documentElement.dataset.keys) return
  document.documentElement.dataset.keys = "ready"
  document.addEventListener("keydown", focus)
}
