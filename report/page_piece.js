parent.postMessage(document.getElementById('data').textContent, '*');
