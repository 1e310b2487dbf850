// Shows a page from its top when something else is shown than before: what was clicked may have stood far down.
export default function (component) {
  const { data, parentElement } = component
  if (parentElement.shown === data.shown) return
  parentElement.shown = data.shown
  document.querySelector(".stMain")?.scrollTo({ top: 0 })
}
